// SPDX-License-Identifier: Apache-2.0
#include "cli/verdict.h"

#include <algorithm>
#include <cstdio>

#include "base/text.h"
#include "core/candidate/language.h"
#include "core/evaluation/label.h"
#include "core/evaluation/load.h"
#include "core/machine/machine.h"
#include "report/diagnosis.h"
#include "report/load.h"
#include "report/view.h"

namespace kernelpro {

namespace {

constexpr std::size_t kLogShown = 6000;

std::string indented(const std::string& text, const std::string& indent) {
  std::string out;
  for (const std::string& line : lines(text)) out += indent + line + "\n";
  return out;
}

// The first line: the result in short.
std::string headline(const VerdictContext& context, const EvaluateOneResult& result) {
  const Outcome& outcome = result.evaluation.outcome;
  std::string text = context.kernel + ": ";
  if (std::holds_alternative<CompileError>(outcome)) return text + "does not compile\n";
  const Correct* correct = result.evaluation.correct();
  if (correct == nullptr) return text + outcome_summary(outcome) + "\n";
  text += "correct";
  if (const double us = score_us(result.evaluation); us > 0) text += ", " + human_us(us);
  if (correct->versus) {
    const Correct::Versus& v = *correct->versus;
    text += v.low > 1 || v.high < 1
                ? ", " + speedup_text(v.ratio) + " the speed of " + context.against
                : ", as fast as " + context.against;
    text += " (" + speedup_text(v.low) + " to " + speedup_text(v.high) + ")";
  }
  return text + "\n";
}

// How much faster this kernel is than a baseline, on the baseline's case.
std::string ratio_text(const Baseline& baseline, const Correct& correct) {
  for (const Timing& timing : correct.timings) {
    if (timing.case_name != baseline.timing.case_name || timing.median_us <= 0) continue;
    return ", " + speedup_text(baseline.timing.median_us / timing.median_us) + " with this kernel";
  }
  return "";
}

std::string times(const std::vector<Baseline>& baselines, const Correct& correct) {
  std::string text;
  const auto row = [&](const std::string& name, const Timing& t, const std::string& rest) {
    char line[400];
    std::snprintf(line, sizeof line, "  %-16s %s (95 %% interval %s to %s, %d samples, %s)%s\n",
                  name.c_str(), human_us(t.median_us).c_str(), human_us(t.low_us).c_str(),
                  human_us(t.high_us).c_str(), t.samples, t.method.c_str(), rest.c_str());
    text += line;
  };
  for (const Timing& timing : correct.timings) row(timing.case_name, timing, "");
  if (correct.energy) text += "  " + energy_text(*correct.energy) + "\n";
  for (const Baseline& baseline : baselines) {
    if (!baseline.error.empty()) {
      text += "  " + baseline.name + ": not measured: " + baseline.error + "\n";
      continue;
    }
    row(baseline.name, baseline.timing, ratio_text(baseline, correct));
  }
  return text;
}

std::string remarks(const VerdictContext& context, const EvaluateOneResult& result) {
  std::string text;
  for (const std::string& label : result.labels) {
    const std::string_view meaning = label_meaning(label);
    text += "  label " + label + (meaning.empty() ? "" : ": " + std::string(meaning)) + "\n";
  }
  if (const Correct* correct = result.evaluation.correct()) {
    for (const std::string& note : correct->notes) text += "  note: " + note + "\n";
    const std::string load = load_text(load_of(correct->observed));
    if (!load.empty()) text += "  note: " + load + " while this was timed\n";
  }
  for (const std::string& note : context.notes) text += "  note: " + note + "\n";
  const std::string& trust = result.evaluation.trust;
  if (!trust.empty() && language_row(result.candidate.language).in_python) {
    text += "  trust: " + std::string(trust_meaning(trust)) + "\n";
  }
  return text;
}

// Details that a writer needs to fix a failure; follows the first line.
std::string failure(const Outcome& outcome) {
  if (const auto* error = std::get_if<CompileError>(&outcome)) {
    return indented(clip(error->log, kLogShown), "  ");
  }
  if (const auto* crash = std::get_if<Crashed>(&outcome)) {
    return trim(crash->output).empty() ? "" : "  it printed:\n" + indented(crash->output, "    ");
  }
  return "";
}

Json parsed(const std::string& text) { return parse_json(text).value_or(Json()); }

Json timing_json(const Timing& t) {
  return {{"case", t.case_name},  {"median_us", t.median_us}, {"low_us", t.low_us},
          {"high_us", t.high_us}, {"samples", t.samples},     {"method", t.method}};
}

// Adds rule, reason and other details in one place, whatever the kind of outcome.
void add_reason(const Outcome& outcome, Json* json) {
  Json& j = *json;
  if (const auto* v = std::get_if<CompileError>(&outcome)) {
    j["reason"] = v->log;
  } else if (const auto* crashed = std::get_if<Crashed>(&outcome)) {
    j["reason"] = crashed->reason;
    j["output"] = crashed->output;
  } else if (const auto* late = std::get_if<TimedOut>(&outcome)) {
    j["reason"] = outcome_summary(outcome);
    j["phase"] = late->phase;
  } else if (const auto* wrong = std::get_if<WrongResult>(&outcome)) {
    j["reason"] = wrong->reason;
    j["case"] = wrong->case_name;
    j["tensor"] = wrong->tensor;
    j["error"] = wrong->error;
    j["tolerance"] = wrong->tolerance;
  } else if (const auto* rejected = std::get_if<Rejected>(&outcome)) {
    j["rule"] = rejected->rule;
    j["reason"] = rejected->reason;
  }
}

}  // namespace

std::string verdict_text(const VerdictContext& context, const EvaluateOneResult& result) {
  std::string text = headline(context, result) + failure(result.evaluation.outcome);
  if (const Correct* correct = result.evaluation.correct())
    text += times(result.baselines, *correct);
  text += remarks(context, result);
  if (result.evaluation.correct() != nullptr && !result.evidence.items().empty()) {
    text += "\n" + diagnosis_for_terminal(result.diagnosis, result.evidence, {});
  }
  return printable(text);
}

std::string diagnosed_anew_text(const VerdictContext& context, const EvaluateOneResult& result) {
  return printable(context.kernel +
                   ": the machine's ceilings were measured again and are higher than when this "
                   "kernel was judged\n\n" +
                   diagnosis_for_terminal(result.diagnosis, result.evidence, {}));
}

Json verdict_json(const VerdictContext& context, const EvaluateOneResult& result) {
  const Evaluation& evaluation = result.evaluation;
  Json json = {{"schema", 1},
               {"task", context.task->name},
               {"kernel", context.kernel},
               {"target", target_name(context.target)},
               {"machine", result.machine.name},
               {"policy", policy_name(context.policy)},
               {"precision", precision_name(context.task->precision)},
               {"outcome", outcome_name(evaluation.outcome)},
               {"rule", ""},
               {"reason", ""}};
  add_reason(evaluation.outcome, &json);
  json["trust"] = evaluation.trust;
  json["time_us"] = score_us(evaluation);
  json["timings"] = Json::array();
  json["versus"] = nullptr;
  Json notes = context.notes;
  if (const Correct* correct = evaluation.correct()) {
    for (const Timing& timing : correct->timings) json["timings"].push_back(timing_json(timing));
    json["max_error"] = correct->max_error;
    if (const auto& v = correct->versus) {
      json["versus"] = {{"what", context.against},
                        {"incumbent", v->incumbent},
                        {"ratio", v->ratio},
                        {"low", v->low},
                        {"high", v->high}};
    }
    for (const std::string& note : correct->notes) notes.push_back(note);
    LoadSummary load;
    load.add(load_of(correct->observed));
    json["load"] = load_json(load);
    const std::string above = ceiling_note(result.diagnosis.fraction_of_ceiling);
    if (!above.empty()) json["ceiling_note"] = above;
  }
  const Json measured = parsed(baselines_to_json(result.baselines));
  json["baselines"] = JsonReader(measured).array("baselines");
  json["labels"] = result.labels;
  json["notes"] = std::move(notes);
  json["knobs"] = result.candidate.knobs;
  json["hash"] = result.candidate.content_hash();
  json["phases_ms"] = result.phases_ms;
  json["evaluation"] = parsed(evaluation_to_json(evaluation));
  json["evidence"] = parsed(evidence_to_json(result.evidence));
  json["diagnosis"] = parsed(diagnosis_to_json(result.diagnosis));
  return json;
}

}  // namespace kernelpro
