// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/text.h"
#include "diagnose/tools/causes.h"
#include "diagnose/tools/traffic.h"

namespace kernelpro {

namespace {

// Conflicts over wavefronts; arbitration noise and matrix-fragment stores stay below this.
constexpr double kLeastReplays = 0.25;
constexpr double kLeastGain = 1.05;

struct Side {
  double conflicts = 0;
  double wavefronts = 0;
};

std::optional<Side> side(const Facts& facts, const std::string& op) {
  const auto conflicts =
      facts.maybe("l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_" + op + ".sum");
  const auto wavefronts =
      facts.maybe("l1tex__data_pipe_lsu_wavefronts_mem_shared_op_" + op + ".sum");
  if (!conflicts || !wavefronts) return std::nullopt;
  return Side{std::min(*conflicts, *wavefronts), *wavefronts};
}

std::vector<Prescription> advice() {
  return {{"bank-layout",
           "Pad the rows of the shared tile so that a column falls on different banks: "
           "`tile[32][33]` for 32-bit elements, 8 more elements for 16-bit ones (keeps the 16-byte "
           "alignment of `ldmatrix`).",
           "the padding would cost a resident block; then swizzle instead"},
          {"bank-layout",
           "Swizzle instead: store 16-byte chunk `c` of row `r` at `c ^ (r & 7)`, or let TMA do it "
           "(`CU_TENSOR_MAP_SWIZZLE_128B`).",
           "rows are shorter than 128 B"},
          {"bank-layout",
           "Let consecutive lanes access consecutive words: change the index that `threadIdx.x` "
           "drives, or keep the fields of a structure in separate arrays.",
           ""}};
}

FindingSites conflicts_at(const Facts& facts) {
  return line_of(facts, {"sass.hot.shared_conflicting", "sass.hot.shared_loads"});
}

std::optional<Finding> counted(const Facts& facts, const Side& loads, const Side& stores) {
  const double wavefronts = loads.wavefronts + stores.wavefronts;
  const double conflicts = loads.conflicts + stores.conflicts;
  if (wavefronts <= 0 || conflicts < kLeastReplays * wavefronts) return std::nullopt;
  const double replays = conflicts / wavefronts;
  Effect effect;
  effect.scale(Resource::kL1, 1 - shared_part(facts) * replays);
  // Barriers wait for the warp with the most replays. The other waits are latency.
  const double waits = stalls(facts, {Stall::kShortScoreboard, Stall::kMioThrottle}, 0.3) +
                       0.5 * stalls(facts, {Stall::kBarrier}, 0);
  effect.waiting = 1 - std::min(1.0, waits) * replays;
  Finding finding;
  set_gain(facts, effect, &finding);
  if (finding.likely_speedup < kLeastGain) return std::nullopt;

  const bool load_side = loads.conflicts >= stores.conflicts;
  const Side& worse = load_side ? loads : stores;
  const double ways = worse.wavefronts / std::max(1.0, worse.wavefronts - worse.conflicts);
  finding.severity = ways >= 4 ? Severity::kCritical : Severity::kWarning;
  finding.cause = percent(replays) + " of the shared-memory wavefronts are replays: " +
                  (load_side ? "loads" : "stores") + " conflict on the same banks, " +
                  number(ways, 3) + "-way on average.";
  const std::string op = load_side ? "ld" : "st";
  finding.metrics = {"l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_" + op + ".sum",
                     "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_" + op + ".sum"};
  finding.sites = joined({conflicts_at(facts), line_of(facts, {"slice.shared"}),
                          array_of(facts, SiteKind::kSharedArray,
                                   {"sass.hot.shared_conflicting", "sass.hot.shared_loads",
                                    "sass.hot.shared_stores"})});
  finding.prescriptions = advice();
  return finding;
}

// From machine code: lanes are known to hit the same bank.
std::optional<Finding> from_code(const Facts& facts) {
  const double conflicting = facts.maybe("sass.hot.shared_conflicting").value_or(0);
  const double ways = facts.maybe("sass.hot.shared_ways").value_or(1);
  const double instructions = facts.maybe("sass.hot.instructions").value_or(0);
  if (conflicting <= 0 || ways < 4 || instructions <= 0) return std::nullopt;
  const Roofline& roof = facts.roofline();
  if (roof.known() && roof.fraction >= 0.7) return std::nullopt;
  const double shared = facts.maybe("sass.hot.shared_loads").value_or(0) +
                        facts.maybe("sass.hot.shared_stores").value_or(0);
  // A multiprocessor issues four instructions per cycle but only one shared access.
  const double sound = std::max(instructions, 4 * shared);
  const double now = std::max(instructions, 4 * (shared + conflicting * (ways - 1)));
  Effect effect;
  effect.waiting = sound / now;
  Finding finding;
  set_gain(facts, effect, &finding);
  finding.likely_speedup = middle(1, finding.likely_speedup);
  finding.upper_speedup = std::max(finding.likely_speedup, std::min(ways, finding.upper_speedup));
  if (finding.likely_speedup < kLeastGain) return std::nullopt;
  finding.severity = Severity::kWarning;
  finding.cause = number(conflicting) + " of the hot loop's " + number(shared) +
                  " shared-memory accesses have up to " + number(ways) +
                  " lanes on one bank, which serializes them.";
  finding.metrics = {"sass.hot.shared_conflicting", "sass.hot.shared_ways"};
  finding.sites = joined({conflicts_at(facts), line_of(facts, {"slice.shared"}),
                          array_of(facts, SiteKind::kSharedArray,
                                   {"sass.hot.shared_conflicting", "sass.hot.shared_loads",
                                    "sass.hot.shared_stores"})});
  finding.prescriptions = advice();
  return finding;
}

std::optional<Finding> bank_conflicts(const Facts& facts) {
  const auto loads = side(facts, "ld");
  const auto stores = side(facts, "st");
  if (loads && stores) return counted(facts, *loads, *stores);
  return from_code(facts);
}

constexpr const char* kBankConflictsOneOf[] = {
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum", "sass.hot.shared_conflicting"};

}  // namespace

extern const Tool kBankConflicts;
const Tool kBankConflicts{.name = "bank-conflicts",
                          .summary = "Lanes access the same shared-memory banks and serialize.",
                          .target = ToolTarget::kCuda,
                          .analyse = bank_conflicts,
                          .one_of = kBankConflictsOneOf};

}  // namespace kernelpro
