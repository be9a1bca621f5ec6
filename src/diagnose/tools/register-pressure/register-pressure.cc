// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "diagnose/tools/causes.h"
#include "diagnose/tools/traffic.h"

namespace kernelpro {

namespace {

constexpr double kManyRegisters = 96;  // per thread
constexpr double kLowOccupancy = 0.4;
constexpr double kLeastGain = 1.08;

bool uses_matrix_units(const Facts& facts) {
  return facts.maybe("sass.hgmma").value_or(0) > 0 || facts.maybe("sass.hmma").value_or(0) > 0 ||
         facts.model().demand(Resource::kTensor) >= 0.3;
}

// Registers, not shared memory or the block shape, limit the resident blocks.
bool registers_limit(const Facts& facts, double blocks) {
  const auto by_registers = facts.maybe("launch__occupancy_limit_registers");
  if (!by_registers) return true;
  for (const char* name : {"launch__occupancy_limit_shared_mem", "launch__occupancy_limit_warps",
                           "launch__occupancy_limit_blocks"}) {
    const auto other = facts.maybe(name);
    if (other && *other < *by_registers) return false;
  }
  return blocks >= *by_registers * 0.5;
}

std::optional<Finding> register_pressure(const Facts& facts) {
  const double registers = facts("launch__registers_per_thread");
  const double block = facts("launch__block_size");
  if (registers <= kManyRegisters || block <= 0 || uses_matrix_units(facts)) return std::nullopt;
  // Registers are allocated in units of 8 per thread, for whole warps.
  const double warps = std::ceil(block / 32);
  const SmLimits& sm = facts.limits();
  const double blocks = std::floor(sm.registers / (std::ceil(registers / 8) * 8 * 32 * warps));
  if (blocks < 1) return std::nullopt;
  const double occupancy = blocks * warps / sm.warps;
  const auto grid = facts.maybe("launch__grid_size");
  const auto units = facts.maybe("machine.parallel_units");
  const double given = grid && units && *units > 0 ? *grid / *units : blocks;
  if (occupancy > kLowOccupancy || !registers_limit(facts, std::min(given, blocks)) ||
      given < blocks) {
    return std::nullopt;
  }
  const KernelModel& model = facts.model();
  if (!model.counted() && facts.roofline().fraction >= 0.5) return std::nullopt;
  // It hurts when warps wait for latency that more warps would hide.
  const double latency =
      stalls(facts, {Stall::kLongScoreboard, Stall::kShortScoreboard, Stall::kWait}, 0.4);
  if (latency < 0.4 || model.waiting() < 0.6) return std::nullopt;
  if (facts.maybe("smsp__issue_active.avg.per_cycle_active").value_or(0) >= 0.6) {
    return std::nullopt;
  }

  const double more = std::min(2.0, 0.5 / occupancy);  // warps, up to half of the slots
  Effect effect;
  effect.waiting = 1 - latency * (1 - 1 / more);
  Finding finding;
  set_gain(model.gain(effect), &finding);
  finding.upper_speedup = std::min(finding.upper_speedup, 1 / occupancy);
  finding.upper_speedup = std::max(finding.upper_speedup, finding.likely_speedup);
  if (!model.counted()) finding.likely_speedup = middle(1, finding.likely_speedup);
  if (finding.likely_speedup < kLeastGain) return std::nullopt;
  const double next = std::floor(sm.registers / ((blocks + 1) * warps * 32) / 8) * 8;
  finding.severity = occupancy < 0.2 ? Severity::kCritical : Severity::kWarning;
  finding.cause = number(registers) + " registers per thread leave room for " +
                  number(blocks * warps) + " of " + number(sm.warps) + " warps per SM (" +
                  percent(occupancy) + "), too few to hide their latency; " + number(next) +
                  " registers would allow another block.";
  finding.metrics = {"launch__registers_per_thread", "launch__block_size"};
  if (model.counted()) finding.metrics.emplace_back("smsp__warps_active.avg.per_cycle_active");
  finding.sites = site_of(facts, {SiteKind::kBounds, SiteKind::kKernel});
  finding.prescriptions = {
      {"tile-size",
       "Keep less live per thread: a smaller tile, fewer arrays, values recomputed instead of "
       "stored.",
       "the tile's reuse is what keeps memory traffic low"},
      {"unroll", "Unroll less, so that fewer loads and accumulators are live at once.",
       "the unrolled loads provide the bytes in flight"},
      {"registers",
       "Ask for another resident block: `__launch_bounds__(" + number(block) + ", " +
           number(blocks + 1) + ")`, and check that ptxas reports no spills.",
       "the kernel spills"}};
  return finding;
}

constexpr const char* kRegisterPressureNeeds[] = {"launch__registers_per_thread",
                                                  "launch__block_size"};

}  // namespace

extern const Tool kRegisterPressure;
const Tool kRegisterPressure{
    .name = "register-pressure",
    .summary = "Threads use so many registers that too few warps are resident.",
    .target = ToolTarget::kCuda,
    .needs = kRegisterPressureNeeds,
    .analyse = register_pressure};

}  // namespace kernelpro
