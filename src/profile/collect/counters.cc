// SPDX-License-Identifier: Apache-2.0
#include "profile/collect/counters.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

#include "base/text.h"
#include "core/evidence/metrics.h"
#include "core/plan/kernel_name.h"
#include "profile/import/ncu.h"

namespace kernelpro {

namespace {

constexpr const char* kTime = "gpu__time_duration.sum";
constexpr double kMostPercent = 130;  // short kernels can appear to exceed the peak

bool possible(const std::string& name, double value) {
  if (!std::isfinite(value) || value < 0) return false;
  return !contains(name, ".pct_of_peak") || value <= kMostPercent;
}

double blocks(const PlanNode& node) { return 1.0 * node.grid[0] * node.grid[1] * node.grid[2]; }

double time_of(const LaunchCounters& launch) {
  const auto found = launch.values.find(kTime);
  return found == launch.values.end() || !std::isfinite(found->second) ? 0 : found->second;
}

const PlanNode* node_of(const LaunchPlan& plan, const LaunchCounters& launch) {
  const auto i = static_cast<std::size_t>(launch.node);
  return launch.node >= 0 && i < plan.nodes.size() ? &plan.nodes[i] : nullptr;
}

// The factor that scales amounts of the profiled launches of `function` to all of its launches.
double to_all_launches(const LaunchPlan& plan, const std::string& function,
                       const std::vector<const LaunchCounters*>& launches) {
  double all = 0, profiled = 0;
  for (const PlanNode& node : plan.nodes) {
    if (node.kind == PlanNode::Kind::kKernel && node.function == function) all += blocks(node);
  }
  for (const LaunchCounters* launch : launches) {
    const PlanNode* node = node_of(plan, *launch);
    if (node == nullptr) return 1;
    profiled += blocks(*node);
  }
  return profiled > 0 && all > profiled ? all / profiled : 1;
}

KernelCounters merge(const std::vector<const LaunchCounters*>& launches, double scale,
                     std::set<std::string>* impossible) {
  struct Sum {
    double values = 0;
    double weights = 0;  // time of the launches that have it
  };
  std::map<std::string, Sum> sums;
  KernelCounters merged;
  for (const LaunchCounters* launch : launches) {
    const double time = time_of(*launch);
    for (const auto& [name, value] : launch->values) {
      if (!possible(name, value)) {
        impossible->insert(name);
        continue;
      }
      Sum& sum = sums[name];
      sum.values += adds_up(name) ? value : time * value;
      sum.weights += time;
    }
    merged.time_ns += time;
  }
  for (const auto& [name, sum] : sums) {
    // A launch without the value counts as the others, by its time.
    const double all = scale * merged.time_ns / sum.weights;
    merged.values[name] = adds_up(name) ? all * sum.values : sum.values / sum.weights;
  }
  merged.time_ns *= scale;
  return merged;
}

void put(Evidence* e, const std::string& name, double value, const std::string& source) {
  if (std::isfinite(value) && find_metric(name) != nullptr) {
    e->set(name, value, source);
  }
}

// Each kernel's share of the total time, if all times are known.
void add_shares(std::map<std::string, KernelEvidence>* kernels, const std::string& source) {
  double all = 0;
  for (const auto& [name, kernel] : *kernels) {
    const auto time = kernel.facts.get(kTime);
    if (!time) return;
    all += *time;
  }
  if (!(all > 0)) return;
  for (auto& [name, kernel] : *kernels) {
    put(&kernel.facts, "kernel.share", *kernel.facts.get(kTime) / all, source);
  }
}

// Notes the kernels whose launches were profiled in vain.
void note_untimed(const CounterAnswers& answers,
                  const std::map<std::string, KernelCounters>& merged,
                  std::map<std::string, KernelEvidence>* kernels) {
  std::set<std::string> untimed;
  for (const LaunchCounters& launch : answers.launches) {
    if (!merged.contains(launch.function)) untimed.insert(launch.function);
  }
  for (const std::string& function : untimed) {
    const auto found = kernels->find(function);
    if (found == kernels->end()) continue;
    found->second.facts.note_missing(
        {Family::kCounters, "the profiler read no time for its launches", "run again"});
  }
}

// Notes the kernels that were only timed, of a call with many.
void note_uncounted(const std::map<std::string, KernelCounters>& merged,
                    std::map<std::string, KernelEvidence>* kernels) {
  for (const auto& [function, counters] : merged) {
    const auto found = kernels->find(function);
    if (found == kernels->end() || counters.values.size() > 1) continue;
    found->second.facts.note_missing({Family::kCounters,
                                      "of a call with many kernels, only the longest are counted",
                                      "nothing to do: it takes little of the time"});
  }
}

// Takes only the counters of a report; we have better sources for the rest.
void add_report(const std::string& report, std::map<std::string, KernelEvidence>* kernels,
                std::vector<Missing>* missing) {
  const Result<NcuImport> import = import_ncu_csv(report, {});
  if (!import) {
    missing->push_back({Family::kCounters, import.error().message, import.error().next});
    return;
  }
  for (auto& [function, kernel] : *kernels) {
    for (const KernelEvidence& theirs : import->evidence.kernels) {
      // ncu spells parameters differently.
      if (short_kernel_name(theirs.name, 200) != short_kernel_name(kernel.name, 200)) continue;
      for (const auto& [name, item] : theirs.facts.items()) {
        if (item.level == Level::kCounters && !kernel.facts.find(name)) {
          put(&kernel.facts, name, item.value, "ncu");
        }
      }
    }
  }
}

}  // namespace

std::map<std::string, KernelCounters> merge_counters(const CounterAnswers& answers,
                                                     const LaunchPlan& plan,
                                                     std::vector<Missing>* missing) {
  std::map<std::string, std::vector<const LaunchCounters*>> by_kernel;
  std::set<std::string> impossible;
  for (const LaunchCounters& launch : answers.launches) {
    if (time_of(launch) > 0) by_kernel[launch.function].push_back(&launch);
  }
  std::map<std::string, KernelCounters> merged;
  for (const auto& [function, launches] : by_kernel) {
    merged[function] = merge(launches, to_all_launches(plan, function, launches), &impossible);
  }
  if (!impossible.empty()) {
    missing->push_back({Family::kCounters,
                        "the profiler read impossible values in some launches, which were left out",
                        "run again; very short kernels are hard to count",
                        {impossible.begin(), impossible.end()}});
  }
  return merged;
}

void add_counters(const CounterAnswers& answers, const LaunchPlan& plan,
                  std::map<std::string, KernelEvidence>* kernels, std::vector<Missing>* missing) {
  missing->insert(missing->end(), answers.missing.begin(), answers.missing.end());
  const auto merged = merge_counters(answers, plan, missing);
  for (const auto& [function, counters] : merged) {
    const auto found = kernels->find(function);
    if (found == kernels->end()) continue;
    for (const auto& [name, value] : counters.values) {
      put(&found->second.facts, name, value, answers.source);
    }
  }
  note_untimed(answers, merged, kernels);
  if (answers.left_out > 0) note_uncounted(merged, kernels);
  if (!answers.report.empty()) add_report(answers.report, kernels, missing);
  add_shares(kernels, answers.source);
  if (answers.left_out > 0) {
    missing->push_back({Family::kCounters,
                        "of a call with many launches, only the longest are profiled; other "
                        "launches of their kernels are assumed alike",
                        "nothing to do, unless launches of one kernel differ much",
                        {},
                        "of " + std::to_string(answers.left_out) + " launches"});
  }
}

}  // namespace kernelpro
