// SPDX-License-Identifier: Apache-2.0
#include "core/proposal/fact.h"

#include <algorithm>

#include "base/json.h"
#include "base/text.h"

namespace kernelpro {

namespace {

constexpr std::size_t kFailureLine = 300;

bool says_error(std::string_view line) {
  return contains(line, "error") || contains(line, "Error") || contains(line, "ERROR");
}

Json json_of(const Fact& f) {
  return {{"when", f.when},
          {"machine", f.machine},
          {"arch", f.arch},
          {"target", target_name(f.target)},
          {"language", language_name(f.language)},
          {"family", f.family},
          {"task", f.task},
          {"task_hash", f.task_hash},
          {"candidate", f.candidate},
          {"proposer", f.proposer},
          {"idea", f.idea},
          {"knobs", f.knobs},
          {"answers", f.answers.text()},
          {"parent", f.parent},
          {"bound", f.bound == Bound::kUnknown ? "" : bound_name(f.bound)},
          {"fraction", f.fraction},
          {"outcome", outcome_name(f.outcome)},
          {"failure", f.failure},
          {"speedup", f.speedup},
          {"low", f.low},
          {"high", f.high},
          {"error", f.error},
          {"cure", f.cure},
          {"api", f.api}};
}

std::vector<std::string> texts_of(const Json& array) {
  std::vector<std::string> all;
  for (const Json& each : array) {
    if (each.is_string()) all.push_back(each.get<std::string>());
  }
  return all;
}

std::optional<Fact> fact_of_json(const Json& json) {
  const JsonReader j(json);
  const auto target = target_from_name(j.text("target"));
  const auto language = language_from_name(j.text("language"));
  const auto outcome = outcome_kind_from_name(j.text("outcome"));
  if (!target || !language || !outcome) return std::nullopt;
  Fact f;
  f.outcome = *outcome;
  f.target = *target;
  f.language = *language;
  f.when = j.text("when");
  f.machine = j.text("machine");
  f.arch = j.text("arch");
  f.family = texts_of(j.array("family"));
  f.task = j.text("task");
  f.task_hash = j.text("task_hash");
  f.candidate = j.text("candidate");
  f.proposer = j.text("proposer");
  f.idea = j.text("idea");
  f.knobs = j.text("knobs");
  f.answers = FindingRef::parse(j.text("answers"));
  f.parent = j.text("parent");
  f.bound = bound_from_name(j.text("bound"));
  f.fraction = j.real("fraction");
  f.failure = j.text("failure");
  f.speedup = j.real("speedup");
  f.low = j.real("low");
  f.high = j.real("high");
  f.error = j.text("error");
  f.cure = j.text("cure");
  f.api = texts_of(j.array("api"));
  return f;
}

}  // namespace

std::string failure_line(std::string_view text) {
  const std::vector<std::string> all = lines(text);
  std::string_view chosen;
  for (const std::string& line : all) {
    if (trim(line).empty()) continue;
    if (says_error(line)) {
      chosen = trim(line);
      break;
    }
    if (chosen.empty()) chosen = trim(line);
  }
  return printable(utf8_prefix(chosen, kFailureLine));
}

std::string failure_line(const Outcome& outcome) {
  if (std::holds_alternative<Correct>(outcome)) return "";
  if (const auto* failed = std::get_if<CompileError>(&outcome)) return failure_line(failed->log);
  const std::vector<std::string> summary = lines(outcome_summary(outcome));
  return summary.empty() ? "" : printable(utf8_prefix(trim(summary[0]), kFailureLine));
}

std::string fact_to_json(const Fact& fact) { return dump_json(json_of(fact)); }

std::optional<Fact> fact_from_json(const std::string& text) {
  const std::optional<Json> json = parse_json(text);
  return json ? fact_of_json(*json) : std::nullopt;
}

std::string facts_to_json(const std::vector<Fact>& facts) {
  Json all = Json::array();
  for (const Fact& fact : facts) all.push_back(json_of(fact));
  return dump_json(all);
}

std::optional<std::vector<Fact>> facts_from_json(const std::string& text) {
  std::vector<Fact> facts;
  if (text.empty()) return facts;
  const std::optional<Json> json = parse_json(text);
  if (!json || !json->is_array()) return std::nullopt;
  for (const Json& each : *json) {
    auto fact = fact_of_json(each);
    if (!fact) return std::nullopt;
    facts.push_back(std::move(*fact));
  }
  return facts;
}

}  // namespace kernelpro
