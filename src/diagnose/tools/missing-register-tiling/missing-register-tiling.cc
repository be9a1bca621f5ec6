// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/text.h"
#include "diagnose/tools/causes.h"
#include "diagnose/tools/traffic.h"

namespace kernelpro {

namespace {

constexpr double kFewProducts = 2.5;  // multiply-adds per shared load; a 4x4 tile has 2, 8x8 has 4
constexpr double kBusy = 0.6;         // of the data pipe of L1 and shared memory, or its queue
constexpr double kWaits = 0.35;
constexpr double kConflicts = 0.15;
constexpr double kKept = 0.25;   // of the shared loads, with a 4x4 tile instead of one output
constexpr double kIssued = 0.6;  // of the instructions: loads and what computes their addresses go
constexpr double kLeastGain = 1.15;

double products_of(const Facts& facts) {
  return facts.maybe("sass.hot.ffma").value_or(0) + facts.maybe("sass.hot.half_math").value_or(0) +
         facts.maybe("sass.hot.fp64").value_or(0);
}

// Bank-conflict replays keep the pipe busy too: left to bank-conflicts.
bool conflicting(const Facts& facts) {
  const double replays =
      facts.maybe("l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum").value_or(0);
  const double all =
      facts.maybe("l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum").value_or(0);
  return all > 0 && replays >= kConflicts * all;
}

bool estimate(const Facts& facts, Finding* finding) {
  const KernelModel& model = facts.model();
  if (!model.counted()) {
    const Roofline& roof = facts.roofline();
    if (!roof.known() || roof.theory != Bound::kCompute || roof.fraction >= 0.35) return false;
    finding->upper_speedup = roof.most();
    finding->likely_speedup = std::min(2.5, middle(1, roof.headroom()));
    return true;
  }
  const double waits = stalls(facts, {Stall::kMioThrottle, Stall::kShortScoreboard}, 0.3);
  const double busy =
      std::max(model.demand(Resource::kL1) * shared_part(facts), model.demand(Resource::kLsu));
  if (busy < kBusy && waits < kWaits) return false;
  Effect effect;
  effect.scale(Resource::kL1, 1 - shared_part(facts) * (1 - kKept)).scale(Resource::kLsu, kKept);
  effect.scale(Resource::kIssue, kIssued);
  effect.waiting = 1 - (1 - kKept) * waits;
  set_gain(facts, effect, finding);
  return finding->likely_speedup >= kLeastGain;
}

std::optional<Finding> missing_register_tiling(const Facts& facts) {
  const double loads = facts("sass.hot.shared_loads");
  const double products = products_of(facts);
  if (loads < 2 || products < 2 || products >= kFewProducts * loads) return std::nullopt;
  const bool matrix =
      facts.maybe("sass.hmma").value_or(0) > 0 || facts.maybe("sass.hgmma").value_or(0) > 0;
  // Requires about as many products as loads in the hot code: sums and scans have far fewer.
  if (matrix || products < 0.4 * loads || conflicting(facts)) return std::nullopt;
  Finding finding;
  if (!estimate(facts, &finding)) return std::nullopt;
  finding.severity = Severity::kWarning;
  finding.cause = number(loads) + " shared-memory loads serve " + number(products) +
                  " multiply-adds in the hot loop (" + number(products / loads, 2) +
                  " each): shared memory feeds the arithmetic too slowly.";
  finding.metrics = {"sass.hot.shared_loads", "sass.hot.ffma"};
  if (facts.model().counted()) {
    finding.metrics.emplace_back(
        "l1tex__data_pipe_lsu_wavefronts.avg.pct_of_peak_sustained_elapsed");
  }
  finding.sites = joined(
      {line_of(facts, {"sass.hot.shared_loads"}), loop_of(facts, {"sass.hot.shared_loads"})});
  finding.prescriptions = {
      {"tile-size",
       "Compute a tile of 4x4 or 8x8 outputs per thread in registers: each value read from shared "
       "memory then serves several multiply-adds.",
       "registers would spill, or too few blocks would remain"},
      {"vectorize",
       "Read shared memory 128 bits at a time (`float4` along the contiguous dimension).",
       "the tile's layout cannot be changed"}};
  return finding;
}

constexpr const char* kMissingRegisterTilingNeeds[] = {"sass.hot.shared_loads"};

}  // namespace

extern const Tool kMissingRegisterTiling;
const Tool kMissingRegisterTiling{
    .name = "missing-register-tiling",
    .summary = "Shared memory supplies the arithmetic one operand at a time.",
    .target = ToolTarget::kCuda,
    .bounds = kNotMemoryBound,
    .needs = kMissingRegisterTilingNeeds,
    .analyse = missing_register_tiling};

}  // namespace kernelpro
