// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/text.h"
#include "diagnose/tools/tool.h"

namespace kernelpro {

namespace {

// In issue slots of a multiprocessor, which issues four instructions per cycle but passes one
// 32-lane access per cycle to its L1 cache (128 B), and about a quarter of that to the L2 cache.
constexpr double kL1Slots = 4;
constexpr double kL2Slots = 16;

// Bottleneck model of one pass of the hot loop, with and without its local accesses.
void estimate(const Facts& facts, double local, Finding* finding) {
  const double kept = std::max(facts("sass.hot.instructions") - local, 1.0);
  double others = 0;  // the rest of the load/store path's work, the same before and after
  for (const char* name : {"sass.hot.global_loads", "sass.hot.global_stores",
                           "sass.hot.shared_loads", "sass.hot.shared_stores"}) {
    others += facts.maybe(name).value_or(0);
  }
  // At best all local accesses hit L1 and overlap with the arithmetic.
  const double after = std::max(kept, kL1Slots * others);
  const double low = std::max(kept + local, kL1Slots * (others + local)) / after;
  // At worst they go to L2 and everything waits for them.
  const double serial = kept + kL1Slots * others;
  const double high = (serial + kL2Slots * local) / serial;
  const Roofline& roof = facts.roofline();
  finding->upper_speedup = std::max(low, high);
  finding->likely_speedup = middle(
      low, roof.known() ? std::min(finding->upper_speedup, roof.most()) : finding->upper_speedup);
}

}  // namespace

std::optional<Finding> register_spill(const Facts& facts) {
  const double spills = facts("ptxas.spill_store_bytes") + facts("ptxas.spill_load_bytes");
  const double stack = facts("ptxas.stack_bytes");
  const double local = facts("sass.hot.local_loads") + facts("sass.hot.local_stores");
  // Spills outside the hot loop (prologue, slow path) cost nothing that matters.
  if (local <= 0 || (spills <= 0 && stack <= 0)) return std::nullopt;

  Finding finding;
  finding.severity = Severity::kCritical;
  finding.metrics = {"ptxas.spill_store_bytes", "ptxas.spill_load_bytes", "ptxas.stack_bytes",
                     "sass.hot.local_loads", "sass.hot.local_stores"};
  const std::string run = number(local) + " of the hot loop's " +
                          number(facts("sass.hot.instructions")) + " instructions are LDL or STL.";
  if (spills > 0) {
    const auto registers = facts.maybe("launch__registers_per_thread");
    finding.cause = number(spills) + " B of registers are spilled per thread" +
                    (registers ? " at " + number(*registers) + " registers" : std::string()) +
                    "; " + run;
    finding.prescriptions = {
        {"registers",
         "Let a thread have more registers: fewer minimum blocks in `__launch_bounds__`, no "
         "`--maxrregcount`.",
         "the kernel is already at 255 registers"},
        {"tile-size", "Compute a smaller tile per thread, so that fewer values live at once.",
         "the tile is what feeds the matrix units; then split it among more warps"},
        {"unroll", "Unroll less (`#pragma unroll 4`), or recompute values instead of keeping them.",
         ""}};
  } else {
    finding.cause = "A local array of " + number(stack) +
                    " B is indexed at run time, so it lives in local memory (nothing spills); " +
                    run;
    finding.prescriptions = {
        {"unroll",
         "Make its indices compile-time constants: unroll the loops over it fully, or select with "
         "a `switch`.",
         "the trip count is not known at compile time"},
        {"shared-memory", "Put a table that is really indexed at run time into shared memory.",
         "shared memory would limit the resident blocks"}};
  }
  estimate(facts, local, &finding);
  return finding;
}

}  // namespace kernelpro
