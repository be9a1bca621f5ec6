// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "diagnose/tools/causes.h"
#include "diagnose/tools/traffic.h"

namespace kernelpro {

namespace {
constexpr double kLeastLoss = 0.15;
// Of the time: dynamic scheduling costs some, and the last pieces still differ (pairs measured on
// an H200).
constexpr double kUneven = 0.06;
constexpr double kShortUs = 20;  // shorter kernels never fill the machine evenly

std::optional<Finding> load_imbalance(const Facts& facts) {
  const double mean = facts("sm__cycles_active.avg"), most = facts("sm__cycles_active.max");
  const double units = facts.maybe("machine.parallel_units").value_or(0);
  const double grid = facts.maybe("launch__grid_size").value_or(0);
  if (mean <= 0 || most <= 0 || facts("gpu__time_duration.sum") < 1e3 * kShortUs) {
    return std::nullopt;
  }
  const double loss = 1 - mean / most;
  // With fewer blocks than multiprocessors the grid is the cause.
  if (loss < kLeastLoss || (units > 0 && grid > 0 && grid < units)) return std::nullopt;
  // The part explained by a partial last wave.
  const double waves = facts.maybe("launch__waves_per_multiprocessor").value_or(0);
  const double tail = waves > 1 ? 1 - waves / std::ceil(waves) : 0;
  if (tail >= loss) return std::nullopt;

  Finding finding;
  finding.upper_speedup = 1 / (1 - loss);
  finding.likely_speedup = 1 / (1 - loss + kUneven);
  finding.severity = loss >= 0.4 ? Severity::kCritical : Severity::kWarning;
  finding.metrics = {"sm__cycles_active.avg", "sm__cycles_active.max"};
  finding.cause = "The busiest SM works " + times(most / mean) +
                  " as long as the average one: blocks have unequal work, and " + percent(loss) +
                  " of the SMs' time is idle.";
  finding.sites =
      joined({line_of(facts, {"slice.block"}), loop_of(facts, {"slice.block", "sass.hot.selects"}),
              site_of(facts, {SiteKind::kLaunch})});
  finding.prescriptions = {
      {"work-distribution",
       "Hand out work at run time: a persistent grid whose blocks take the next tile from an "
       "atomic counter, or smaller blocks, many more than SMs.",
       "the order of the work matters"},
      {"work-distribution",
       "Start the longest pieces first: sort or bin rows by length, or pair long with short ones "
       "(triangular work: block i with block n-1-i).",
       "lengths are not known in advance"},
      {"grid-size", "Split the longest pieces among several blocks and add their results.",
       "the pieces are few and equal"}};
  return finding;
}

constexpr const char* kLoadImbalanceNeeds[] = {"sm__cycles_active.avg", "sm__cycles_active.max",
                                               "gpu__time_duration.sum"};

}  // namespace

extern const Tool kLoadImbalance;
const Tool kLoadImbalance{.name = "load-imbalance",
                          .summary = "Some SMs work much longer than others.",
                          .target = ToolTarget::kCuda,
                          .needs = kLoadImbalanceNeeds,
                          .analyse = load_imbalance};

}  // namespace kernelpro
