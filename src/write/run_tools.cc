// SPDX-License-Identifier: Apache-2.0
#include "write/run_tools.h"

#include <algorithm>
#include <optional>

#include "base/json.h"
#include "base/text.h"
#include "core/candidate/language.h"
#include "core/finding/change.h"
#include "write/prompt/prompt.h"

namespace kernelpro {

namespace {

using Answer = CodeTools::Answered;

constexpr std::size_t kSourceBytes = 24 << 10;
constexpr const char* kShow = "show_candidate";
constexpr const char* kDiagnosis = "show_diagnosis";
constexpr const char* kCompare = "compare_candidates";

Answer cannot(const std::string& why) { return {why, true, false}; }

const Known* candidate_of(const ProposalRequest& request, std::int64_t id) {
  for (const KnownPtr& known : request.history) {
    if (known->id == id && !known->brief()) return known.get();
  }
  return nullptr;
}

Answer unknown_candidate(const ProposalRequest& request) {
  return cannot("there is no such candidate; there are 1 to " +
                std::to_string(request.history.size()) + " of this run");
}

Answer show_one(const ProposalRequest& request, const JsonReader& given) {
  const Known* known = candidate_of(request, given.integer("id"));
  if (known == nullptr) return unknown_candidate(request);
  const Candidate& candidate = known->candidate;
  return {result_text(*known, request) + "\n" +
              fenced(clip(candidate.source, kSourceBytes), language_row(candidate.language).fence),
          false, false};
}

// What one tool said of a candidate.
std::string tool_text(const Diagnosis& diagnosis, const std::string& tool) {
  Diagnosis one;
  for (const Finding& finding : diagnosis.findings) {
    if (finding.tool == tool) one.findings.push_back(finding);
  }
  if (!one.findings.empty()) return diagnosis_to_text(one);
  for (const ToolRun& run : diagnosis.tools) {
    if (run.tool != tool) continue;
    return tool + " found nothing" + (run.reason.empty() ? "" : ": " + run.reason) + "\n";
  }
  std::vector<std::string> names;
  for (const ToolRun& run : diagnosis.tools) names.push_back(run.tool);
  return "There is no tool of that name; there are " + join_text(names, ", ") + ".\n";
}

Answer show_diagnosis(const ProposalRequest& request, const JsonReader& given) {
  const Known* known = candidate_of(request, given.integer("id"));
  if (known == nullptr) return unknown_candidate(request);
  const std::string tool = given.text("tool");
  return {printable(tool.empty() ? diagnosis_to_text(known->diagnosis)
                                 : tool_text(known->diagnosis, tool)),
          false, false};
}

Answer compare_two(const ProposalRequest& request, const JsonReader& given) {
  const Known* before = candidate_of(request, given.integer("before"));
  const Known* after = candidate_of(request, given.integer("after"));
  if (before == nullptr || after == nullptr) return unknown_candidate(request);
  const std::string title =
      "Candidate " + std::to_string(before->id) + " against candidate " + std::to_string(after->id);
  const std::string text = change_to_text(
      what_changed(before->diagnosis, after->diagnosis, {}, drift_between(*before, *after)), title);
  if (text.empty()) return cannot("one of them was not correct, so that it has no time");
  return {text, false, false};
}

struct RunAnswering {
  const char* name;
  Answer (*answer)(const ProposalRequest& request, const JsonReader& given);
};
constexpr RunAnswering kRunTools[] = {
    {kShow, show_one}, {kDiagnosis, show_diagnosis}, {kCompare, compare_two}};

std::string arguments_of(const Json& properties, const Json& required) {
  return dump_json({{"type", "object"}, {"properties", properties}, {"required", required}});
}

Json argument(const char* type, const char* what) {
  return Json{{"type", type}, {"description", what}};
}

}  // namespace

RunTools::RunTools(const ProposalRequest& request) : request_(request) {
  if (!request.memory || request.feedback != Feedback::kDiagnosed) return;
  if (request.history.size() < 2) return;
  const Json id = argument("integer", "the candidate's number");
  specs_ = {
      {kShow, "Shows the source and the result of any candidate of this run.",
       arguments_of({{"id", id}}, {"id"})},
      {kDiagnosis,
       "Shows where a candidate's time goes and all that was found, or what one diagnosis "
       "tool says of it.",
       arguments_of({{"id", id}, {"tool", argument("string", "a tool's name; all if left out")}},
                    {"id"})},
      {kCompare, "Shows which parts of the time moved between two candidates.",
       arguments_of({{"before", id}, {"after", id}}, {"before", "after"})}};
}

bool RunTools::has(const std::string& name) const {
  return std::any_of(specs_.begin(), specs_.end(),
                     [&](const ToolSpec& spec) { return spec.name == name; });
}

CodeTools::Answered RunTools::call(const std::string& name, const std::string& arguments) const {
  const std::optional<Json> json = parse_json(arguments);
  if (!json || !json->is_object()) return cannot("the arguments are not a JSON object");
  const JsonReader given(*json);
  for (const RunAnswering& tool : kRunTools) {
    if (name == tool.name) return tool.answer(request_, given);
  }
  return cannot("there is no such tool");
}

}  // namespace kernelpro
