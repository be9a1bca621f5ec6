// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/text.h"
#include "diagnose/tools/tool.h"

namespace kernelpro {

std::optional<Finding> scalar_loads(const Facts& facts) {
  const Roofline& roof = facts.roofline();
  const double loads = facts("sass.hot.global_loads");
  const double narrow = facts("sass.hot.global_loads_narrow");
  const double words = facts("sass.hot.global_loads_32");
  const double scalar = narrow + words;
  const double instructions = std::max(facts("sass.hot.instructions"), loads);
  if (loads <= 0 || scalar < 0.5 * loads) return std::nullopt;
  // At the bandwidth that a copy reaches, wider loads win nothing.
  const double memory = roof.known() ? roof.memory_floor_us / roof.time_us : 0;
  if (memory >= 0.85) return std::nullopt;
  // In a compute-bound loop with few loads they are not what it waits for.
  if (roof.theory == Bound::kCompute && scalar < 0.05 * instructions) return std::nullopt;

  // Matrix fragments straight from global memory: their layout fixes the width of each load, and
  // what is missing is reuse, not width.
  const auto shared = facts.maybe("sass.hot.shared_loads");
  if (facts.maybe("sass.hmma").value_or(0) > 0 && shared && *shared <= 0) return std::nullopt;

  const double merged = narrow > words ? 8 : 4;  // 16-bit or 32-bit elements in 128 bits
  const double removed = scalar / instructions * (1 - 1 / merged);
  const auto wide = facts.maybe("sass.hot.global_loads_128");
  Finding finding;
  finding.severity = Severity::kWarning;
  finding.metrics = {"sass.hot.global_loads", "sass.hot.global_loads_32",
                     "sass.hot.global_loads_narrow"};
  finding.cause = number(scalar) + " of " + number(loads) + " global loads in the hot loop are " +
                  (narrow > words ? "8- or 16-bit" : "32-bit") +
                  (wide ? " (" + number(*wide) + " are 128-bit)" : std::string()) +
                  "; one 128-bit "
                  "load can do the work of " +
                  number(merged) + ".";
  finding.prescriptions = {
      {"vectorize",
       "Load and store 128 bits at a time: `float4` (or eight halves as `uint4`) through "
       "`reinterpret_cast<const float4*>`, a tail loop for the rest.",
       "rows are not a multiple of the vector or bases are not 16-byte aligned"},
      {"unroll",
       "Give each thread several independent elements and load all of them before the first use.",
       "registers would cross an occupancy step or spill"}};
  const double fewer = speedup_without(removed);
  finding.upper_speedup = std::max(fewer, std::min(merged, roof.most()));
  // Bound by memory and below the bandwidth, it waits for the bytes in flight (Little's law), which
  // grow with each load's width; elsewhere (and in kernels too short to fill memory) only the
  // instructions count.
  const bool waits = roof.known() && roof.theory != Bound::kCompute && roof.bound != Bound::kLaunch;
  finding.likely_speedup =
      waits ? std::max(fewer, middle(1, std::min(merged, roof.headroom()))) : fewer;
  return finding;
}

}  // namespace kernelpro
