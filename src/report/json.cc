// SPDX-License-Identifier: Apache-2.0
#include <map>

#include "core/candidate/language.h"
#include "core/machine/ceiling_json.h"
#include "report/load.h"
#include "report/page.h"
#include "report/pareto.h"
#include "report/replayed.h"
#include "report/view.h"

namespace kernelpro {

namespace {

Json parsed(const std::string& text) { return parse_json(text).value_or(Json()); }

Json energy_json(const Energy& energy) {
  Json json = {{"millijoules", energy.millijoules},
               {"low", energy.low},
               {"high", energy.high},
               {"busy_w", energy.busy_w},
               {"idle_w", energy.idle_w}};
  if (energy.versus) json["incumbent_over_this"] = energy.versus->ratio;
  return json;
}

Json candidate_json(const StoredCandidate& candidate, const Story& story) {
  const Known& known = candidate.known;
  Json json = {{"id", known.id},
               {"parent", known.candidate.origin.parent},
               {"proposer", known.candidate.origin.proposer},
               {"idea", idea_text(known.candidate.origin)},
               {"answers", known.candidate.origin.answers.text()},
               {"hash", known.candidate.content_hash()},
               {"language", language_name(known.candidate.language)},
               {"knobs", known.candidate.knobs},
               {"source", known.candidate.source},
               {"evaluated", candidate.evaluated}};
  if (!candidate.evaluated) return json;
  json["order"] = candidate.order;
  json["at_s"] = candidate.at_s;
  json["outcome"] = outcome_name(known.evaluation.outcome);
  json["time_us"] = score_us(known.evaluation);
  if (const auto speed = story.speedups.find(known.id); speed != story.speedups.end()) {
    json["speedup"] = {
        {"ratio", speed->second.ratio}, {"low", speed->second.low}, {"high", speed->second.high}};
  }
  if (const Energy* energy = energy_of(candidate)) json["energy"] = energy_json(*energy);
  json["evaluation"] = parsed(evaluation_to_json(known.evaluation));
  json["diagnosis"] = parsed(diagnosis_to_json(known.diagnosis));
  return json;
}

Json replayed_json(const Replayed& row) {
  Json json = {{"recorded", row.then.id},
               {"change", change_words(row.change)},
               {"recorded_outcome", row.then.outcome},
               {"recorded_us", row.then.us},
               {"recorded_speedup", row.then.speedup}};
  if (row.now == nullptr) return json;
  json["id"] = row.now->known.id;
  json["outcome"] = row.outcome;
  json["time_us"] = row.us;
  json["speedup"] = row.speedup;
  return json;
}

}  // namespace

std::string render_json(const RunView& view) {
  const Story story = tell(view);
  Json json = {{"directory", view.directory},
               {"task", view.header.task.name},
               {"target", target_name(view.header.target)},
               {"created", view.header.created},
               {"version", view.header.version},
               {"machine", parsed(machine_to_json(view.header.machine))},
               {"settings", parsed(view.header.settings_json)},
               {"run_seconds", view.run_seconds},
               {"evaluations", story.evaluated},
               {"outcomes", story.outcomes},
               {"verdict", verdict(view, story)},
               {"credit", credit(story)},
               {"confirmed", story.confirmed}};
  if (Json load = load_json(story.load); !load.empty()) json["load"] = std::move(load);
  if (story.best != nullptr) {
    json["best"] = {{"id", story.best->known.id},
                    {"time_us", story.final_us},
                    {"speedup", story.speedup},
                    {"speedup_low", story.low},
                    {"speedup_high", story.high},
                    {"knobs", story.best->known.candidate.knobs},
                    {"source", story.best->known.candidate.source}};
    // Its confirmation's, where there is one: other processes may see more.
    const Evaluation& last =
        story.confirmed ? view.confirmation->evaluation : story.best->known.evaluation;
    if (const Correct* correct = last.correct()) json["best"]["labels"] = correct->labels;
    put_fraction(story.fraction, &json["best"]);
  }
  if (view.confirmation) {
    json["stopped_by"] = view.confirmation->stopped_by;
    json["own_ms_per_evaluation"] = view.confirmation->own_ms_per_evaluation;
  }
  if (view.confirmation && !view.confirmation->held_out.empty()) {
    json["held_out"] = parsed(held_out_to_json(view.confirmation->held_out));
  }
  const std::vector<const StoredCandidate*> front = pareto_front(view);
  if (!front.empty()) json["pareto_front"] = Json::array();
  for (const StoredCandidate* each : front) json["pareto_front"].push_back(each->known.id);
  const std::vector<Replayed> again = replayed(view, story);
  if (!again.empty()) json["replayed"] = Json::array();
  for (const Replayed& row : again) json["replayed"].push_back(replayed_json(row));
  json["tool_steps"] = Json::array();
  for (const ToolStep& step : view.steps) {
    json["tool_steps"].push_back({{"candidate", step.candidate},
                                  {"tool", step.tool},
                                  {"tag", step.tag},
                                  {"likely", step.likely},
                                  {"upper", step.upper},
                                  {"measured", step.measured},
                                  {"record", step.record}});
  }
  json["calls"] = Json::array();
  for (const ModelCall& call : view.calls) json["calls"].push_back(page_call(call));
  std::map<std::int64_t, const SearchNode*> nodes;
  for (const SearchNode& node : view.nodes) nodes[node.id] = &node;
  json["candidates"] = Json::array();
  for (const StoredCandidate& candidate : view.candidates) {
    json["candidates"].push_back(candidate_json(candidate, story));
    const auto node = nodes.find(candidate.known.id);
    if (node == nodes.end()) continue;
    json["candidates"].back()["search"] = {{"visits", node->second->visits},
                                           {"value", node->second->value},
                                           {"dead_end", node->second->reason}};
  }
  return dump_json(json, 2) + "\n";
}

}  // namespace kernelpro
