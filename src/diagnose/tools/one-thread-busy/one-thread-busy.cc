// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/text.h"
#include "diagnose/tools/tool.h"

namespace kernelpro {

namespace {

constexpr double kShortCallUs = 20;   // waking a thread team takes microseconds
constexpr double kBusyPart = 0.7;     // of the hardware threads that others left
constexpr double kOthersHeld = 0.25;  // hardware threads, on average

// Whether other work may explain idle threads of code that has parallel regions: a team waits for
// its slowest thread, so one thread held elsewhere idles all of them.
bool others_interfered(const Facts& facts, double units) {
  return facts.maybe("load.foreign_cpu").value_or(0) * units >= kOthersHeld ||
         facts.maybe("load.pairs_dropped").value_or(0) > 0 ||
         facts.maybe("load.pairs_disturbed").value_or(0) > 0;
}

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
  if (units < 2 || time_us < kShortCallUs || busy >= kBusyPart * left) return std::nullopt;
  const bool parallel = facts.maybe("cpu.asm.parallel_regions").value_or(0) > 0;
  if (parallel && others_interfered(facts, units)) return std::nullopt;

  const double ideal = left / std::max(busy, 1.0);
  if (ideal <= 1) return std::nullopt;
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
