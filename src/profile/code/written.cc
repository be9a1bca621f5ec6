// SPDX-License-Identifier: Apache-2.0
#include "profile/code/written.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "core/machine/architecture.h"

namespace kernelpro {

namespace {

constexpr double kSector = 32;
constexpr double kWidest = 16;  // bytes of a thread's store
constexpr double kUnknown = std::numeric_limits<double>::infinity();

double or_unknown(const std::optional<double>& value) { return value.value_or(kUnknown); }

// Bulk copies bypass the store counters and may have any size.
double by_counters(const Evidence& kernel) {
  const auto stores = kernel.get("l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum");
  if (!stores || or_unknown(kernel.get("sass.bulk_copies")) > 0) return kUnknown;
  double sectors = *stores;
  if (or_unknown(kernel.get("sass.global_atomics")) > 0) {
    sectors += or_unknown(kernel.get("lts__t_sectors_srcunit_tex_op_atom.sum"));
    sectors += or_unknown(kernel.get("lts__t_sectors_srcunit_tex_op_red.sum"));
  }
  return kSector * sectors;
}

double by_code(const Evidence& kernel, double threads) {
  for (const char* name : {"sass.loops", "sass.calls", "sass.global_atomics", "sass.bulk_copies"}) {
    if (or_unknown(kernel.get(name)) > 0) return kUnknown;
  }
  return threads * kWidest * or_unknown(kernel.get("sass.global_stores"));
}

double by_time(const Evidence& kernel, double bandwidth) {
  const auto ns = kernel.get("gpu__time_duration.sum");
  if (!ns || *ns <= 0 || bandwidth <= 0) return kUnknown;
  const double bytes = 1e-9 * *ns * bandwidth;
  return std::min(kL2Speed * bytes, std::max(bytes, kKeptInL2));
}

double threads_of(const PlanNode& n) {
  double threads = 1;
  for (const auto& dims : {n.grid, n.block}) {
    for (const std::uint32_t d : dims) threads *= d;
  }
  return threads;
}

}  // namespace

std::map<std::string, double> most_written(const LaunchPlan& plan,
                                           const std::map<std::string, KernelEvidence>& kernels,
                                           double bandwidth) {
  std::map<std::string, double> threads;
  for (const PlanNode& n : plan.nodes) {
    if (n.kind != PlanNode::Kind::kKernel) continue;
    double& most = threads[n.function];
    most = std::max(most, threads_of(n));
  }
  std::map<std::string, double> written;
  for (const auto& [function, count] : threads) {
    const auto kernel = kernels.find(function);
    if (kernel == kernels.end()) continue;
    const Evidence& facts = kernel->second.facts;
    const double most =
        std::min({by_counters(facts), by_code(facts, count), by_time(facts, bandwidth)});
    if (most < kUnknown) written[function] = most;
  }
  return written;
}

}  // namespace kernelpro
