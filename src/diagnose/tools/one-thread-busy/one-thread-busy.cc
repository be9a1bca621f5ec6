// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/text.h"
#include "diagnose/tools/tool.h"

namespace kernelpro {

namespace {

std::vector<Prescription> advice(bool parallel) {
  if (parallel) {
    return {{"threads",
             "The code already has parallel regions: give every thread an equal, contiguous chunk "
             "of work, move serial work before and between the regions into them, and start as "
             "many threads as there are hardware threads.",
             "the task itself is serial there"}};
  }
  return {{"threads",
           "Distribute the outermost independent loop over all hardware threads (`#pragma omp "
           "parallel for`), in contiguous chunks.",
           "iterations depend on one another; then split the reduction in two stages"}};
}

std::optional<Finding> one_thread_busy(const Facts& facts) {
  const double busy = std::max(facts("cpu.threads_busy"), 0.01);
  const double units = facts("machine.parallel_units");
  const double time_us = facts("timing.median");
  // The kernel could not use hardware threads held by other processes.
  const double foreign = facts.roofline().foreign;
  const double left = units * (1 - foreign);
  // Waking a thread team takes microseconds; shorter calls cannot benefit.
  if (units < 2 || time_us < 20 || busy >= 0.7 * left) return std::nullopt;

  const double ideal = left / std::max(busy, 1.0);
  if (ideal <= 1) return std::nullopt;
  const bool parallel = facts.maybe("cpu.asm.parallel_regions").value_or(0) > 0;
  Finding finding;
  finding.severity = busy < 1.5 && !parallel ? Severity::kCritical : Severity::kWarning;
  finding.metrics = {"cpu.threads_busy", "machine.parallel_units", "timing.median"};
  finding.cause = "On average " + number(busy, 3) + " of " + number(units) +
                  " hardware threads are busy during the call of " + human_us(time_us);
  if (foreign > 0) {
    finding.cause += "; other processes left only " + number(left, 2) + " of them";
    finding.metrics.emplace_back("load.foreign_cpu");
  }
  if (parallel) {
    finding.cause += ", although the code has parallel regions";
    finding.metrics.emplace_back("cpu.asm.parallel_regions");
  }
  finding.cause += ".";
  finding.prescriptions = advice(parallel);
  finding.upper_speedup = ideal;
  finding.likely_speedup = speedup_without(0.9 * (1 - 1 / ideal));
  return finding;
}

constexpr const char* kOneThreadBusyNeeds[] = {"cpu.threads_busy", "machine.parallel_units",
                                               "timing.median"};

}  // namespace

extern const Tool kOneThreadBusy;
const Tool kOneThreadBusy{.name = "one-thread-busy",
                          .summary = "Hardware threads are idle while the call runs.",
                          .target = ToolTarget::kCpu,
                          .needs = kOneThreadBusyNeeds,
                          .analyse = one_thread_busy};

}  // namespace kernelpro
