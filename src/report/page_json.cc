// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <map>

#include "base/text.h"
#include "core/candidate/language.h"
#include "report/dead_ends.h"
#include "report/load.h"
#include "report/not_seen.h"
#include "report/page.h"
#include "report/pareto.h"
#include "report/replayed.h"
#include "run/store/settings.h"
#include "write/calls.h"

namespace kernelpro {

namespace {

Json row_json(const StoredCandidate& candidate, const Story& story) {
  const Known& known = candidate.known;
  const Origin& origin = known.candidate.origin;
  Json row = {{"id", known.id},
              {"parent", origin.parent},
              {"by", origin.proposer},
              {"idea", clip(idea_text(origin), 600)},
              {"language", language_name(known.candidate.language)}};
  if (!origin.answers.empty()) row["answers"] = clip(origin.answers.text(), 300);
  if (const std::string knobs = knobs_to_text(known.candidate.knobs); !knobs.empty()) {
    row["knobs"] = clip(knobs, 600);
  }
  if (!candidate.evaluated) {
    row["outcome"] = "waiting";
    return row;
  }
  row["order"] = candidate.order;
  row["at"] = candidate.at_s;
  row["outcome"] = outcome_name(known.evaluation.outcome);
  const double us = score_us(known.evaluation);
  if (us <= 0) return row;
  row["us"] = us;
  row["bound"] = bound_name(known.diagnosis.bound);
  // Above kBeyondCeiling a share means nothing.
  const double fraction = known.diagnosis.fraction_of_ceiling;
  if (fraction > 0) row["fraction"] = std::min(fraction, kBeyondCeiling);
  if (const auto found = story.speedups.find(known.id); found != story.speedups.end()) {
    row["ratio"] = found->second.ratio;
    if (found->second.low > 0 && std::isfinite(found->second.high)) {
      row["low"] = found->second.low;
      row["high"] = found->second.high;
    }
  }
  if (const Energy* energy = energy_of(candidate)) row["mj"] = energy->millijoules;
  return row;
}

Json result_json(const RunView& view, const Story& story) {
  const auto id_of = [](const StoredCandidate* each) { return each ? each->known.id : 0; };
  Json json = {{"verdict", verdict(view, story)},
               {"credit", credit(story)},
               {"confirmed", story.confirmed},
               {"start", id_of(story.start)},
               {"baseline", id_of(story.baseline)},
               {"best", id_of(story.best)},
               {"baseline_words", baseline_words(story)},
               {"speedup", story.speedup},
               {"baseline_us", story.final_baseline_us},
               {"best_us", story.final_us},
               {"fraction", std::min(story.fraction, kBeyondCeiling)},
               {"fraction_words", story.fraction > 0 ? ceiling_share(story.fraction) : ""},
               {"baseline_fraction", std::min(story.baseline_fraction, kBeyondCeiling)}};
  if (story.low > 0 && story.low < story.high && std::isfinite(story.high)) {
    json["low"] = story.low;
    json["high"] = story.high;
  }
  json["path"] = Json::array();
  for (const StoredCandidate* each : story.path) json["path"].push_back(each->known.id);
  return json;
}

Json missing_json(const Story& story) {
  Json list = Json::array();
  const StoredCandidate* seen = story.best != nullptr ? story.best : story.start;
  if (seen == nullptr) return list;
  for (const auto& [names, reason, next] : not_seen(seen->evidence)) {
    list.push_back({join_text(names, ", "), reason, next});
  }
  for (const ToolRun& run : seen->known.diagnosis.tools) {
    if (run.state != ToolRun::State::kNotEvaluable) continue;
    list.push_back({"the tool " + run.tool, run.reason, ""});
  }
  return list;
}

Json held_out_page(const RunView& view) {
  const std::vector<HeldOut>& all = view.confirmation->held_out;
  Json json = {{"speedup", held_out_speedup(all)}, {"failed", held_out_failed(all)}};
  for (const HeldOut& one : all) json["cases"].push_back({one.case_name, held_out_outcome(one)});
  return json;
}

Json replay_json(const RunView& view, const std::vector<Replayed>& rows) {
  const Recorded recorded = recorded_from_json(view.header.recorded_json);
  Json json = {{"summary", replayed_summary(rows)},
               {"directory", recorded.directory},
               {"machine", recorded.machine},
               {"tolerance", kReplayTolerance}};
  for (const Replayed& row : rows) {
    json["rows"].push_back({{"then", row.then.id},
                            {"now", row.now == nullptr ? 0 : row.now->known.id},
                            {"outcomes", {row.then.outcome, row.outcome}},
                            {"us", {row.then.us, row.us}},
                            {"speedups", {row.then.speedup, row.speedup}},
                            {"change", change_words(row.change)}});
  }
  return json;
}

// The task's declared work, from what was observed of a candidate, for the roofline.
void put_work(const Story& story, Json* head) {
  for (const StoredCandidate* each : {story.best, story.start}) {
    if (each == nullptr) continue;
    const auto bytes = each->evidence.get("task.compulsory_bytes");
    if (!bytes) continue;
    const auto part = [&](const char* name) { return each->evidence.get(name).value_or(0); };
    (*head)["work"] = {{"bytes", *bytes},
                       {"flops", part("task.flops")},
                       {"matmul_flops", part("task.matmul_flops")}};
    return;
  }
}

void put_machine(const Machine& machine, Json* head) {
  const Ceilings& c = machine.ceilings;
  (*head)["machine"] = {{"name", machine.name},
                        {"versions", machine.versions},
                        {"copy_bytes_per_s", c.copy_bytes_per_s},
                        {"fma_flops_per_s", c.fma_flops_per_s},
                        {"tensor_flops_per_s", c.tensor_flops_per_s},
                        {"how", c.how},
                        {"basis", ceilings_basis(c)}};
}

Json steps_json(const RunView& view) {
  Json list = Json::array();
  for (const ToolStep& step : view.steps) {
    list.push_back(
        {step.candidate, step.tool, clip(step.tag, 60), step.likely, step.upper, step.measured});
  }
  return list;
}

void put_waiting(const RunView& view, const Story& story, Json* head) {
  constexpr std::size_t kShown = 200;
  Json waiting = Json::array();
  for (const StoredCandidate& each : view.candidates) {
    if (!each.evaluated && waiting.size() < kShown) waiting.push_back(row_json(each, story));
  }
  (*head)["waiting"] = std::move(waiting);
}

}  // namespace

Json page_head(const RunView& view, const Story& story) {
  Json head = {{"directory", view.directory},
               {"task", view.header.task.name},
               {"summary", view.header.task.summary},
               {"target", target_name(view.header.target)},
               {"created", view.header.created},
               {"version", view.header.version},
               {"run_seconds", view.run_seconds},
               {"evaluated", story.evaluated},
               {"outcomes", story.outcomes},
               {"load", load_text(story.load)},
               {"models", calls_text(view.calls)},
               {"questions", view.calls.size()},
               {"result", result_json(view, story)},
               {"missing", missing_json(story)},
               {"steps", steps_json(view)}};
  if (const auto settings = settings_from_json(view.header.settings_json)) {
    head["limit"] = settings->max_evaluations;
    head["proposer"] = settings->proposer;
  }
  put_machine(view.header.machine, &head);
  put_work(story, &head);
  put_waiting(view, story, &head);
  head["dead"] = Json::object();
  for (const auto& [id, reason] : dead_ends(view)) head["dead"][std::to_string(id)] = reason;
  if (view.confirmation) {
    head["stopped_by"] = view.confirmation->stopped_by;
    head["own_ms"] = view.confirmation->own_ms_per_evaluation;
    if (!view.confirmation->held_out.empty()) head["held_out"] = held_out_page(view);
  }
  const std::vector<const StoredCandidate*> front = pareto_front(view);
  for (const StoredCandidate* each : front) head["front"].push_back(each->known.id);
  if (const auto rows = replayed(view, story); !rows.empty()) {
    head["replay"] = replay_json(view, rows);
  }
  return head;
}

Json page_rows(const RunView& view, const Story& story, std::int64_t after) {
  Json rows = Json::array();
  for (const StoredCandidate& each : view.candidates) {
    if (each.evaluated && each.order > after) rows.push_back(row_json(each, story));
  }
  return rows;
}

std::string json_for_html(const Json& json) {
  const std::string plain = dump_json(json);
  std::string text;
  for (std::size_t at = 0; at < plain.size();) {
    const std::size_t end = std::min(plain.find('<', at), plain.size());
    text.append(plain, at, end - at);
    if (end < plain.size()) text += "\\u003c";
    at = end + 1;
  }
  return text;
}

}  // namespace kernelpro
