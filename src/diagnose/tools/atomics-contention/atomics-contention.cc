// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/text.h"
#include "diagnose/tools/causes.h"
#include "diagnose/tools/traffic.h"

namespace kernelpro {

namespace {

constexpr double kUnitBusy = 0.4;      // of the L2 atomic units
constexpr double kLeastPart = 0.1;     // of the warps' global accesses
constexpr double kLeastPerWarp = 0.3;  // atomics per warp; one per block is far less
constexpr double kSpread = 8;          // sectors per request: many addresses
constexpr double kMostOfL2 = 0.5;      // of the sectors requested from L2
constexpr double kLeastGain = 1.1;
constexpr double kShareOfJam = 0.3;    // of the stalls: waits for memory
constexpr double kSeenWaiting = 0.1;   // of the time, for atomics, by samples
constexpr double kNothingBusy = 0.15;  // of any resource: what waits, waits behind the atomics
constexpr double kSerialNs = 2;        // of an atomic behind others at its address
constexpr double kLeastTime = 0.05;    // of the kernel's time
constexpr double kCrowded = 8;         // passes of an atomic on shared memory: lanes meet
constexpr double kSpreadOut = 3;       // ... with a copy for each few lanes

std::string in_millions(double count) {
  return count >= 1e6 ? number(count / 1e6, 3) + " million" : number(count);
}

struct Atomics {
  double requests = 0;
  double sectors = 0;
  double part = 0;  // of all global requests
  double returning = 0;
};

std::optional<Atomics> counted_atomics(const Facts& facts) {
  const auto atom = facts.maybe("l1tex__t_requests_pipe_lsu_mem_global_op_atom.sum");
  const auto red = facts.maybe("l1tex__t_requests_pipe_lsu_mem_global_op_red.sum");
  if (!atom || !red) return std::nullopt;
  Atomics result;
  result.requests = *atom + *red;
  result.returning = result.requests > 0 ? *atom / result.requests : 0;
  for (const char* name :
       {"lts__t_sectors_srcunit_tex_op_atom.sum", "lts__t_sectors_srcunit_tex_op_red.sum"}) {
    result.sectors += facts.maybe(name).value_or(0);
  }
  double all = result.requests;
  for (const char* name : {"l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",
                           "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum"}) {
    all += facts.maybe(name).value_or(0);
  }
  result.part = all > 0 ? result.requests / all : 0;
  return result;
}

// Mean atomics per warp over the launch; nullopt: unknown launch.
std::optional<double> per_warp(const Facts& facts, double requests) {
  const auto grid = facts.maybe("launch__grid_size");
  const auto block = facts.maybe("launch__block_size");
  if (!grid || !block || *grid <= 0 || *block <= 0) return std::nullopt;
  const double launches = std::max(1.0, facts.maybe("kernel.launches").value_or(1));
  return requests / (*grid * ((*block + 31) / 32) * launches);
}

bool has_cas_loop(const Facts& facts) {
  return facts.maybe("sass.cas_loops").value_or(0) > 0 ||
         facts.maybe("sass.hot.cas").value_or(0) > 0;
}

std::vector<Prescription> advice(bool cas, bool shared) {
  std::vector<Prescription> list;
  if (cas) {
    list.push_back(
        {"atomics",
         "Replace the compare-and-swap loop with a native atomic: `atomicAdd` on float, double or "
         "`__half2`; for a float maximum, `atomicMax` on its bits in integer order.",
         "there is no native operation; then reduce first and update rarely"});
  }
  list.push_back({"atomics",
                  "Reduce before the atomic: in the warp (`__reduce_add_sync`, shuffles), then in "
                  "the block through shared memory, so that only one atomic per block remains.",
                  "the lanes of a block hit many different addresses"});
  list.push_back({"shared-memory",
                  shared ? "Give each warp its own copy of the bins in shared memory, and sum the "
                           "copies at the end."
                         : "Keep private bins per block in shared memory and add them to the "
                           "global ones at the end.",
                  "the bins do not fit in shared memory; then sort or bucket the keys"});
  list.push_back({"algorithm",
                  "Let one block own each output and gather its contributions (two stages), which "
                  "needs no atomics and is deterministic.",
                  "contributions per output are few and irregular"});
  return list;
}

void finish(const Facts& facts, bool shared, Finding* finding) {
  finding->sites =
      line_of(facts, {"sass.cas_loops", "sass.hot.cas", "sass.hot.global_atomics",
                      "sass.hot.shared_atomics", "sass.shared_atomics", "sass.global_atomics"});
  finding->prescriptions = advice(has_cas_loop(facts), shared);
}

bool is_atomic(std::string_view instruction) {
  for (const std::string_view name : {"ATOMG", "ATOM.", "RED.", "REDG"}) {
    if (instruction.find(name) != std::string_view::npos) return true;
  }
  return false;
}

// Even one after the other they would take little of the time, and nothing waits for them. Their
// part of the accesses does not tell where bulk copies move the data.
bool too_few(const Facts& facts, const Atomics& atomics) {
  const double ns = facts.maybe("gpu__time_duration.sum").value_or(0);
  return ns > 0 && facts.places() != nullptr && !has_cas_loop(facts) &&
         atomics.requests * kSerialNs < kLeastTime * ns &&
         exposed_by(facts, is_atomic) < kLeastTime;
}

std::optional<Finding> global_counted(const Facts& facts, const Atomics& atomics) {
  const KernelModel& model = facts.model();
  const double unit = model.busy(Resource::kAtomics).value_or(0);
  const auto each = per_warp(facts, atomics.requests);
  const bool many = atomics.part >= kLeastPart && each.value_or(1) >= kLeastPerWarp;
  if (atomics.requests <= 0 || (unit < kUnitBusy && !many)) return std::nullopt;
  if (unit < kUnitBusy && too_few(facts, atomics)) return std::nullopt;
  const double spread = atomics.sectors / atomics.requests;
  const auto l2 = facts.maybe("lts__t_sectors_srcunit_tex.sum");
  const double of_l2 = l2 && *l2 > 0 ? std::min(1.0, atomics.sectors / *l2) : 0;
  // Nothing is busy, warps wait for memory, and memory requests are mostly atomics: they serialize
  // in a few L2 slices, while the counters average over all slices.
  const double waited = memory_wait(facts, 0) + stalls(facts, {Stall::kMembar}, 0);
  const bool queue = model.demand() < 0.6 && of_l2 >= kMostOfL2 && waited >= 0.5;
  // Spread over many addresses, atomics run at the speed of the units, which are not the limit.
  if (spread >= kSpread && unit < kUnitBusy && !queue) return std::nullopt;

  // Lanes on one address serialize in one L2 slice, and all other accesses queue up behind them.
  const bool alone = model.demand() < kNothingBusy && waited >= kShareOfJam &&
                     exposed_by(facts, is_atomic) >= kSeenWaiting;
  const bool jammed = queue || alone || (spread <= 2 && model.demand() < 0.6);
  const double sure = alone ? 1 : std::clamp(atomics.part / 0.3, 0.3, 1.0);
  // Accesses to shared memory and shuffles pass the same unit, behind atomics that it cannot send.
  const double behind =
      alone ? stalls(facts, {Stall::kShortScoreboard, Stall::kMioThrottle}, 0) : 0;
  // If device memory or arithmetic is the limit, atomics hide behind it; the model accounts for it.
  const double waits =
      jammed ? memory_wait(facts, 0.8) + stalls(facts, {Stall::kMembar}, 0) + behind
             : stalls(facts, {Stall::kLgThrottle, Stall::kDrain, Stall::kMembar}, 0.5) +
                   stalls(facts, {Stall::kLongScoreboard}, 0.3) *
                       std::max(atomics.returning > 0 ? atomics.part : 0,
                                has_cas_loop(facts) ? 0.8 : 0.0) +
                   stalls(facts, {Stall::kBarrier}, 0) * 0.5;
  Effect effect;
  effect.scale(Resource::kAtomics, 0.1);
  // A compare-and-swap loop is usually replaced by an atomic, which still waits a little.
  const double gone = !jammed ? 0.85 : has_cas_loop(facts) ? 0.92 : 0.97;
  effect.waiting = 1 - gone * sure * std::min(1.0, waits);
  effect.scale(Resource::kL2, 1 - 0.9 * of_l2);
  Finding finding;
  if (jammed) {
    effect.scale(Resource::kL1, 1 - 0.8 * atomics.part);
    effect.scale(Resource::kLsu, 1 - 0.8 * atomics.part);
  }
  set_gain(facts, effect, &finding);
  // The kernel's other work hides behind the queue, and no counter shows its limit.
  if (jammed && facts.roofline().known()) {
    finding.upper_speedup = std::max(finding.upper_speedup, facts.roofline().most());
  }
  if (finding.likely_speedup < kLeastGain) return std::nullopt;
  finding.severity = finding.likely_speedup >= 2 ? Severity::kCritical : Severity::kWarning;
  finding.cause =
      in_millions(atomics.requests) + " atomic requests go to L2 (" + percent(atomics.part) +
      " of the global accesses, " + number(spread, 2) + " sectors per request" +
      (unit >= 0.05 ? ", atomic units " + percent(unit) + " busy" : std::string()) + ")" +
      (spread <= 2 ? ": the lanes of a warp hit the same addresses and serialize."
                   : ": they queue up there.") +
      (has_cas_loop(facts) ? " A compare-and-swap loop retries each time it loses." : "");
  finding.metrics = {"l1tex__t_requests_pipe_lsu_mem_global_op_atom.sum",
                     "l1tex__t_requests_pipe_lsu_mem_global_op_red.sum",
                     "lts__d_atomic_input_cycles_active.avg.pct_of_peak_sustained_elapsed"};
  finish(facts, false, &finding);
  return finding;
}

// Data-pipe wavefronts that are neither plain shared accesses nor global ones.
double atomic_wavefronts(const Facts& facts) {
  const auto busy = facts.model().busy(Resource::kL1);
  const auto cycles = facts.maybe("gpc__cycles_elapsed.max");
  const auto units = facts.maybe("machine.parallel_units");
  if (!busy || !cycles || !units || *busy <= 0) return 0;
  const double sectors = facts.maybe("l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum").value_or(0) +
                         facts.maybe("l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum").value_or(0);
  const double global = sectors / 4 / (*busy * *cycles * *units);
  return std::clamp(1 - global - shared_part(facts), 0.0, 1.0);
}

// Passes through the data pipe for each executed atomic on shared memory, from the part of the hot
// instructions that they are; 0: unknown. One without conflicts takes one or two.
double passes_of_shared_atomics(const Facts& facts, double atomics) {
  const auto busy = facts.model().busy(Resource::kL1);
  const auto cycles = facts.maybe("gpc__cycles_elapsed.max");
  const auto units = facts.maybe("machine.parallel_units");
  const auto executed = facts.maybe("smsp__inst_executed.sum");
  const auto hot = facts.maybe("sass.hot.instructions");
  if (!busy || !cycles || !units || !executed || !hot || *hot <= 0 || *executed <= 0) return 0;
  return atomic_wavefronts(facts) * *busy * *cycles * *units / (*executed * atomics / *hot);
}

// Atomics on shared memory stall like other shared accesses. On floats they are retry loops, which
// the compiler keeps apart from the loop that needs them.
std::optional<Finding> shared_counted(const Facts& facts) {
  const bool spins = facts.maybe("sass.wait_loops").value_or(0) > 0;
  double atomics = facts.maybe("sass.hot.shared_atomics").value_or(0);
  const bool apart = atomics <= 0 && spins;
  if (apart) atomics = facts.maybe("sass.shared_atomics").value_or(0);
  if (atomics <= 0) return std::nullopt;
  const double waits = stalls(
      facts,
      {Stall::kShortScoreboard, Stall::kMioThrottle, Stall::kBranchResolving, Stall::kLgThrottle},
      0);
  const double others = facts.maybe("sass.hot.shared_loads").value_or(0) +
                        facts.maybe("sass.hot.shared_stores").value_or(0);
  const double part = atomics / (atomics + others);
  const bool cas = has_cas_loop(facts) || (spins && apart);
  const double passes = passes_of_shared_atomics(facts, atomics);
  const bool crowded = !cas && passes >= kCrowded;
  if (waits < 0.4 || (part < 0.3 && !cas)) return std::nullopt;
  Effect effect;
  effect.waiting = 1 - waits * (cas ? 0.8 : crowded ? 0.9 : 0.7 * part);
  // A retry loop reads first.
  const double pipe = cas       ? atomic_wavefronts(facts) + shared_part(facts)
                      : crowded ? atomic_wavefronts(facts)
                                : part * shared_part(facts);
  const double gone = cas ? 0.85 : crowded ? 1 - kSpreadOut / passes : 0.7;
  effect.scale(Resource::kL1, 1 - gone * std::min(1.0, pipe));
  if (cas) effect.scale(Resource::kLsu, 1 - gone).scale(Resource::kIssue, 0.4);
  Finding finding;
  set_gain(facts, effect, &finding);
  // Privatized bins in shared memory are good practice.
  if (finding.likely_speedup < (cas ? kLeastGain : 1.25)) return std::nullopt;
  finding.severity = Severity::kWarning;
  finding.cause = percent(waits) + " of the stalls are on shared memory, where the kernel has " +
                  number(atomics) + (cas ? " atomics in a compare-and-swap loop" : " atomics") +
                  (crowded ? ", each of about " + number(passes, 2) +
                                 " passes: lanes of a warp meet at the same addresses."
                           : ": threads of a block contend for the same addresses.");
  finding.metrics = {apart ? "sass.shared_atomics" : "sass.hot.shared_atomics",
                     "smsp__average_warps_issue_stalled_short_scoreboard_per_issue_active.ratio"};
  finish(facts, true, &finding);
  return finding;
}

// From machine code: an atomic per few loads, or a compare-and-swap loop.
std::optional<Finding> from_code(const Facts& facts) {
  const double atomics = facts.maybe("sass.hot.global_atomics").value_or(0);
  const double loads = facts.maybe("sass.hot.global_loads").value_or(0);
  const bool cas = has_cas_loop(facts);
  const Roofline& roof = facts.roofline();
  const double fraction = facts.fraction_of_light();
  if (fraction >= 0.4) return std::nullopt;
  if (!cas && (atomics <= 0 || atomics < 0.5 * loads)) return std::nullopt;
  Finding finding;
  finding.severity = Severity::kWarning;
  finding.upper_speedup = roof.known() ? roof.most() : 1 / fraction;
  finding.likely_speedup = middle(1, roof.known() ? roof.headroom() : 1 / fraction);
  finding.cause = cas ? "A compare-and-swap loop updates memory, and every thread that loses "
                        "retries; the kernel runs at " +
                            percent(fraction) + " of the speed of light at most."
                      : number(atomics) + " atomics on global memory for " + number(loads) +
                            " loads in the hot loop: each element is added to memory separately.";
  finding.metrics = {"sass.hot.global_atomics", "sass.cas_loops", "timing.median"};
  finish(facts, false, &finding);
  return finding;
}

std::optional<Finding> atomics_contention(const Facts& facts) {
  const auto atomics = counted_atomics(facts);
  if (!atomics || !facts.model().counted()) return from_code(facts);
  std::optional<Finding> global = global_counted(facts, *atomics);
  return global ? global : shared_counted(facts);
}

constexpr const char* kAtomicsContentionOneOf[] = {
    "l1tex__t_requests_pipe_lsu_mem_global_op_atom.sum", "sass.hot.global_atomics"};

}  // namespace

extern const Tool kAtomicsContention;
const Tool kAtomicsContention{
    .name = "atomics-contention",
    .summary = "Atomics on few addresses, or in compare-and-swap loops, serialize.",
    .target = ToolTarget::kCuda,
    .analyse = atomics_contention,
    .one_of = kAtomicsContentionOneOf};

}  // namespace kernelpro
