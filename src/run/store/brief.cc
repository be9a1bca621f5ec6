// SPDX-License-Identifier: Apache-2.0
#include "run/store/brief.h"

#include <algorithm>

#include "base/json.h"

namespace kernelpro {

Promise promise_of(const Diagnosis& diagnosis) {
  Promise promise;
  for (const Finding& finding : diagnosis.findings) {
    promise.stop |= finding.stop;
    if (finding.prescriptions.empty()) continue;
    promise.likely = std::max(promise.likely, finding.likely_speedup);
    promise.upper = std::max(promise.upper, finding.upper_speedup);
  }
  return promise;
}

namespace {

// Reads up to the next quote; false when there is no such text. Escapes are not supported.
bool plain_string(const std::string& text, std::size_t* at, std::string* out) {
  if (*at >= text.size() || text[*at] != '"') return false;
  const std::size_t end = text.find_first_of("\"\\", *at + 1);
  if (end == std::string::npos || text[end] != '"') return false;
  out->assign(text, *at + 1, end - *at - 1);
  *at = end + 1;
  return true;
}

// Parses what the store writes, unless a value needs an escape: several times faster than a JSON
// parser.
bool plain_knobs(const std::string& text, KnobValues* knobs) {
  if (text == "{}") return true;
  if (text.empty() || text[0] != '{') return false;
  std::string name;
  std::string value;
  for (std::size_t at = 1; at < text.size(); ++at) {
    if (!plain_string(text, &at, &name) || at >= text.size() || text[at++] != ':') return false;
    if (!plain_string(text, &at, &value) || at >= text.size()) return false;
    knobs->emplace_hint(knobs->end(), std::move(name), std::move(value));
    if (text[at] == '}') return at + 1 == text.size();
    if (text[at] != ',') return false;
  }
  return false;
}

}  // namespace

bool knobs_from_text(const std::string& text, KnobValues* knobs) {
  knobs->clear();
  if (plain_knobs(text, knobs)) return true;
  knobs->clear();
  const Json parsed = parse_json(text).value_or(Json());
  if (!parsed.is_object()) return false;
  for (const auto& [name, value] : parsed.items()) {
    if (!value.is_string()) return false;
    (*knobs)[name] = value.get<std::string>();
  }
  return true;
}

bool brief_outcome(const std::string& name, double score_us, Outcome* outcome) {
  const std::optional<OutcomeKind> kind = outcome_kind_from_name(name);
  if (!kind) return false;
  *outcome = bare_outcome(*kind);
  if (auto* correct = std::get_if<Correct>(outcome)) {
    correct->timings.push_back({"", score_us, score_us, score_us, 0, ""});
  }
  return true;
}

}  // namespace kernelpro
