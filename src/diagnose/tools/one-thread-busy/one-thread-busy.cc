// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/text.h"
#include "diagnose/tools/tool.h"

namespace kernelpro {

std::optional<Finding> one_thread_busy(const Facts& facts) {
  const double busy = std::max(facts("cpu.threads_busy"), 0.01);
  const double units = facts("machine.parallel_units");
  const double time_us = facts("timing.median");
  // Waking a thread team takes microseconds; a shorter call cannot win from it.
  if (units < 2 || time_us < 20 || busy >= 0.7 * units) return std::nullopt;

  const double ideal = units / std::max(busy, 1.0);
  Finding finding;
  finding.severity = busy < 1.5 && units >= 2 ? Severity::kCritical : Severity::kWarning;
  finding.metrics = {"cpu.threads_busy", "machine.parallel_units", "timing.median"};
  finding.cause = "On average " + number(busy, 3) + " of " + number(units) +
                  " hardware threads are busy during the call of " + human_us(time_us) + ".";
  finding.prescriptions = {
      {"threads",
       "Share the outermost independent loop among all hardware threads (`#pragma omp parallel "
       "for`), in contiguous chunks.",
       "iterations depend on one another; then split the reduction in two stages"}};
  finding.upper_speedup = ideal;
  finding.likely_speedup = speedup_without(0.9 * (1 - 1 / ideal));
  return finding;
}

}  // namespace kernelpro
