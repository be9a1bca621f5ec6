// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/text.h"
#include "diagnose/tools/causes.h"
#include "diagnose/tools/tool.h"

namespace kernelpro {

namespace {
constexpr double kLeastShare = 0.02;
// At least one in ten repetitions: a cache that grows now and then is fine.
constexpr double kLeastCalls = 0.1;

std::optional<Finding> allocations_in_path(const Facts& facts) {
  const double span = facts("trace.span");
  const double calls = facts("trace.allocations");
  // One-time allocations are fine.
  if (span <= 0 || calls < kLeastCalls || facts("trace.periods") <= 0) return std::nullopt;
  const double idle_us = facts.maybe("trace.gaps_allocation").value_or(0);
  const double host_us = facts.maybe("trace.allocations_us").value_or(0);
  if (idle_us < kLeastShare * span) return std::nullopt;

  Finding finding;
  finding.severity = idle_us >= 0.3 * span ? Severity::kCritical : Severity::kWarning;
  finding.metrics = {"trace.allocations", "trace.allocations_us", "trace.gaps_allocation",
                     "trace.span"};
  finding.cause = number(calls) + " allocations and frees in each repetition (" +
                  human_us(host_us) + " of host time) leave the GPU idle for " +
                  percent(idle_us / span) + " of " + human_us(span) +
                  ": cudaMalloc and cudaFree wait for the device.";
  finding.prescriptions = {
      {"host", "Allocate once before the loop and reuse the buffers.",
       "sizes are not known in advance"},
      {"host",
       "Allocate in stream order from a pool (cudaMallocAsync and cudaFreeAsync with a release "
       "threshold; PyTorch: use its caching allocator, do not call empty_cache()).",
       "memory is shared with other processes that need it back"}};
  finding.likely_speedup = speedup_without(idle_us / span);
  const double sync_us = facts.maybe("trace.gaps_sync").value_or(0);
  const double late_us = facts.maybe("trace.gaps_launch").value_or(0);
  finding.upper_speedup = speedup_without((idle_us + sync_us + late_us) / span);
  finding.sites = site_of(facts, {SiteKind::kAllocate});
  return finding;
}

constexpr const char* kAllocationsInPathNeeds[] = {"trace.span", "trace.allocations",
                                                   "trace.periods"};

}  // namespace

extern const Tool kAllocationsInPath;
const Tool kAllocationsInPath{.name = "allocations-in-path",
                              .summary = "Memory is allocated and freed in every call.",
                              .target = ToolTarget::kCuda,
                              .needs = kAllocationsInPathNeeds,
                              .analyse = allocations_in_path,
                              .scope = Scope::kCall};

}  // namespace kernelpro
