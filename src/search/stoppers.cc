// SPDX-License-Identifier: Apache-2.0
#include "search/stoppers.h"

#include <algorithm>
#include <functional>

#include "base/text.h"
#include "core/machine/machine.h"

namespace kernelpro {

namespace {

using Rule = std::function<std::optional<std::string>(const Standing&)>;

class RuleStopper : public Stopper {
 public:
  explicit RuleStopper(Rule rule) : rule_(std::move(rule)) {}
  std::optional<std::string> reason(const Standing& standing) const override {
    return rule_(standing);
  }

 private:
  Rule rule_;
};

std::unique_ptr<Stopper> stopper(Rule rule) {
  return std::make_unique<RuleStopper>(std::move(rule));
}

std::string percent(double fraction) { return number(100 * fraction, 3) + " %"; }

}  // namespace

std::unique_ptr<Stopper> stop_after_evaluations(int most) {
  return stopper([most](const Standing& s) -> std::optional<std::string> {
    if (most <= 0 || s.evaluations < most) return std::nullopt;
    return "the budget of " + std::to_string(most) + " evaluations is used up";
  });
}

std::unique_ptr<Stopper> stop_after_seconds(double most) {
  return stopper([most](const Standing& s) -> std::optional<std::string> {
    if (most <= 0 || s.elapsed_s < most) return std::nullopt;
    return "the time budget of " + human_seconds(most) + " is used up";
  });
}

std::unique_ptr<Stopper> stop_near_ceiling(double fraction) {
  return stopper([fraction](const Standing& s) -> std::optional<std::string> {
    if (fraction <= 0 || !s.has_correct || s.fraction_of_ceiling < fraction) return std::nullopt;
    if (s.ceiling_disturbed || s.fraction_of_ceiling > kBeyondCeiling) return std::nullopt;
    return "the best runs at " + percent(s.fraction_of_ceiling) +
           " of the measured ceiling (limit " + percent(fraction) + ")";
  });
}

std::optional<double> expected_gain(const Standing& s) {
  if (!s.has_correct || s.ceiling_disturbed) return std::nullopt;
  if (s.fraction_of_ceiling <= 0 || s.fraction_of_ceiling > kBeyondCeiling) return std::nullopt;
  const double left = std::max(0.0, 1 / s.fraction_of_ceiling - 1);
  return left / 2 / (s.since_best + 2);
}

std::unique_ptr<Stopper> stop_when_little_is_expected(double least) {
  return stopper([least](const Standing& s) -> std::optional<std::string> {
    const std::optional<double> expected = expected_gain(s);
    // The first evaluations say nothing about what a writer can do.
    constexpr int kFirst = 5;
    if (least <= 0 || !expected || *expected >= least || s.since_best < kFirst) {
      return std::nullopt;
    }
    return "the next evaluation is expected to gain " + percent(*expected) + " (limit " +
           percent(least) + "): the best runs at " + percent(s.fraction_of_ceiling) +
           " of the measured ceiling, and the last " + std::to_string(s.since_best) +
           " evaluations found nothing better";
  });
}

std::unique_ptr<Stopper> stop_at_plateau(int evaluations_without_better) {
  return stopper(
      [limit = evaluations_without_better](const Standing& s) -> std::optional<std::string> {
        if (limit <= 0 || s.since_best < limit) return std::nullopt;
        return std::to_string(s.since_best) + " evaluations in a row found nothing better";
      });
}

std::unique_ptr<Stopper> first_of(std::vector<std::unique_ptr<Stopper>> stoppers) {
  auto shared = std::make_shared<std::vector<std::unique_ptr<Stopper>>>(std::move(stoppers));
  return stopper([shared](const Standing& s) -> std::optional<std::string> {
    for (const auto& each : *shared) {
      if (auto reason = each->reason(s)) return reason;
    }
    return std::nullopt;
  });
}

}  // namespace kernelpro
