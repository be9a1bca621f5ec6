// SPDX-License-Identifier: Apache-2.0
#include "expectation.h"

#include <algorithm>

#include "base/text.h"

namespace kernelpro {

namespace {

constexpr double kNoFaster = 1.1;
constexpr double kDeclared = 1.005;  // EvaluateSettings::min_effect: an interval above it is a win
constexpr std::string_view kOutcomes[] = {"compile-error", "crashed", "timed-out", "wrong-result",
                                          "rejected",      "correct", "slow"};

bool has(const std::vector<std::string>& all, std::string_view one) {
  return std::find(all.begin(), all.end(), one) != all.end();
}

using Answer = Expectation::Answer;

Answer answer(bool holds) { return holds ? Answer::kYes : Answer::kNo; }

Answer holds_for(const Expectation::Alternative& wanted, const Outcome& outcome) {
  if (const auto* correct = std::get_if<Correct>(&outcome)) {
    if (wanted.outcome == "slow") {
      const auto& versus = correct->versus;
      if (!versus) return Answer::kUnclear;  // an attack may have driven the incumbent away
      if (versus->ratio <= kNoFaster) return Answer::kYes;
      return versus->low <= kDeclared ? Answer::kUnclear : Answer::kNo;
    }
    if (wanted.outcome != "correct") return Answer::kNo;
    if (!wanted.detail.empty()) return answer(has(correct->labels, wanted.detail));
    return answer(!is_partial(*correct, {}));
  }
  if (wanted.outcome != outcome_name(outcome)) return Answer::kNo;
  if (wanted.detail.empty()) return Answer::kYes;
  if (const auto* rejected = std::get_if<Rejected>(&outcome)) {
    return answer(rejected->rule == wanted.detail);
  }
  return answer(contains(outcome_summary(outcome), wanted.detail));
}

}  // namespace

bool Expectation::names(std::string_view outcome) const {
  return std::any_of(alternatives.begin(), alternatives.end(),
                     [&](const Alternative& each) { return each.outcome == outcome; });
}

bool Expectation::only(std::string_view outcome) const {
  return std::all_of(alternatives.begin(), alternatives.end(),
                     [&](const Alternative& each) { return each.outcome == outcome; });
}

Answer Expectation::holds(const Outcome& outcome) const {
  Answer best = Answer::kNo;
  for (const Alternative& each : alternatives) best = std::max(best, holds_for(each, outcome));
  return best;
}

std::string verdict_text(const Outcome& outcome) {
  std::string text = outcome_name(outcome);
  if (const auto* rejected = std::get_if<Rejected>(&outcome)) text += " " + rejected->rule;
  if (const auto* correct = std::get_if<Correct>(&outcome)) {
    for (const std::string& label : correct->labels) text += " " + label;
    if (correct->versus) text += " x" + number(correct->versus->ratio, 3);
  }
  return text;
}

std::optional<SuiteHeader> read_header(std::string_view source) {
  constexpr int kLines = 8;
  SuiteHeader header;
  const std::vector<std::string> all = lines(source);
  for (int i = 0; i < kLines && i < static_cast<int>(all.size()); ++i) {
    std::string_view line = all[static_cast<std::size_t>(i)];
    while (!line.empty() && (line[0] == '/' || line[0] == '#' || line[0] == ' ')) {
      line.remove_prefix(1);
    }
    if (line.starts_with("task:")) header.task = std::string(trim(line.substr(5)));
    if (!line.starts_with("expect:")) continue;
    line.remove_prefix(7);
    while (!line.empty()) {
      const std::size_t bar = std::min(line.find('|'), line.size());
      const std::string_view part = trim(line.substr(0, bar));
      const std::size_t space = std::min(part.find(' '), part.size());
      header.expectation.alternatives.push_back(
          {std::string(part.substr(0, space)), std::string(trim(part.substr(space)))});
      line.remove_prefix(std::min(bar + 1, line.size()));
    }
  }
  const bool known =
      std::all_of(header.expectation.alternatives.begin(), header.expectation.alternatives.end(),
                  [](const Expectation::Alternative& each) {
                    return std::find(std::begin(kOutcomes), std::end(kOutcomes), each.outcome) !=
                           std::end(kOutcomes);
                  });
  if (header.task.empty() || header.expectation.alternatives.empty() || !known) return std::nullopt;
  return header;
}

}  // namespace kernelpro
