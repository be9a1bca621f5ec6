// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "diagnose/account/gains.h"
#include "diagnose/tools/causes.h"
#include "diagnose/tools/traffic.h"

namespace kernelpro {

namespace {

constexpr double kLeastExcess = 1.3;  // bytes moved over bytes needed
constexpr double kLeastPasses = 1.6;  // L2 reads over inputs: nearly two passes
constexpr double kLeastBytes = 10e6;  // less stays in L2
constexpr double kLeastGain = 1.08;
constexpr double kOfIssue = 0.2;  // of the issued instructions: what passes over the input take

struct Excess {
  double moved = 1;   // device-memory traffic over compulsory bytes
  double reads = 1;   // the same for reads
  double passes = 1;  // L2 reads over inputs
};

std::optional<Excess> excess_of(const Facts& facts) {
  const auto least = compulsory_at_most(facts);
  const auto moved = dram(facts);
  if (!least || !moved || least->reads <= 0) return std::nullopt;
  Excess excess;
  excess.moved = moved->bytes() / least->bytes;
  excess.reads = moved->reads / least->reads;
  // Half-used sectors are not passes.
  if (const auto l2 = l2_read_bytes(facts)) {
    const auto loads = global_loads(facts);
    const double hits =
        facts.maybe("l1tex__t_sectors_pipe_lsu_mem_global_op_ld_lookup_hit.sum").value_or(0);
    const double waste =
        loads && loads->ideal > 0 ? std::max(1.0, (loads->sectors - hits) / loads->ideal) : 1;
    excess.passes = *l2 / waste / least->reads;
  }
  return excess;
}

// Fewer passes take away what the samples show to be lost to memory beyond the floor, and some of
// the instructions. nullopt: there are no samples.
std::optional<double> most_by_samples(const Facts& facts) {
  const KernelAccount* account = facts.account();
  const Places* places = facts.places();
  const bool sampled = places != nullptr && places->basis == Places::Basis::kSampled;
  if (account == nullptr || !sampled) return std::nullopt;
  double us = account->part(PartKind::kTraffic) + kOfIssue * account->part(PartKind::kIssue);
  for (const Stall stall : {Stall::kLongScoreboard, Stall::kLgThrottle, Stall::kTexThrottle,
                            Stall::kMioThrottle, Stall::kDrain}) {
    us += account->wait(stall);
  }
  return gain_eliminating(*account, us);
}

std::vector<Prescription> advice(bool one_kernel, bool whole) {
  std::vector<Prescription> list = {
      {"passes",
       "Read the input only once: fuse the passes (online softmax, Welford's or shifted one-pass "
       "mean and variance), or keep the row in registers or shared memory between them.",
       "a row fits neither in registers nor in a cluster's shared memory, and a one-pass form "
       "loses too much precision"},
      {"tile-size",
       "Where several blocks read the same input, give each block more outputs, so that an input "
       "is "
       "fetched by fewer blocks.",
       "only one block uses each input"}};
  if (!one_kernel) {
    list.insert(list.begin(),
                {"fusion",
                 "Fuse this kernel with the one that produces or uses its intermediate, so that "
                 "the intermediate never goes through device memory.",
                 "other code needs the intermediate"});
  }
  if (!whole) {
    list.push_back({"cache-hints",
                    "Run the second pass while the data is still in L2: process a few rows at a "
                    "time, both passes, before the next rows.",
                    "the passes depend on the whole input"});
  }
  return list;
}

Finding describe(const Facts& facts, const Excess& excess, const Dram& moved,
                 const Compulsory& least, bool from_dram) {
  const double kernels = facts.maybe("plan.kernels").value_or(1);
  Finding finding;
  finding.severity = excess.moved >= 2 ? Severity::kCritical : Severity::kWarning;
  finding.metrics = {
      "dram__bytes_read.sum", "dram__bytes_write.sum",
      facts.maybe("task.compulsory_bytes") ? "task.compulsory_bytes" : "trace.allocated_bytes"};
  if (from_dram) {
    finding.cause = "Device memory moves " + human_bytes(moved.bytes()) + " where " +
                    human_bytes(least.bytes) + " would be enough (" + times(excess.moved) + ")" +
                    (least.split ? ": the inputs are read " + number(excess.reads, 2) + " times."
                                 : std::string("."));
  } else {
    finding.metrics.emplace_back("lts__t_sectors_srcunit_tex.sum");
    finding.cause = "The kernel reads its inputs from L2 " + number(excess.passes, 2) +
                    " times; L2 serves most of these passes (device memory reads " +
                    times(excess.reads) + " the inputs).";
  }
  finding.prescriptions = advice(kernels < 2, !from_dram);
  finding.sites = joined(
      {line_of(facts, {"sass.hot.global_loads"}), loop_of(facts, {"sass.hot.global_loads"})});
  return finding;
}

std::optional<Finding> re_read_excess(const Facts& facts) {
  const auto excess = excess_of(facts);
  if (!excess) return std::nullopt;
  const Dram moved = *dram(facts);
  const Compulsory least = *compulsory_at_most(facts);
  if (std::max(moved.bytes(), least.bytes) < kLeastBytes) return std::nullopt;
  // Half-used sectors are a different flaw; fix it first.
  if (worst_excess(facts) >= 2) return std::nullopt;
  // Whoever looks up what data tell reads an entry as often as it is asked for.
  if (scattered(facts)) return std::nullopt;
  // Re-reads because tiles share operands depend on tile order: left to l2-locality.
  const bool tiles = facts.roofline().theory == Bound::kCompute ||
                     std::max(excess->passes, excess->reads) > kManyPasses || !own_passes(facts);
  const bool from_dram = excess->reads >= kLeastExcess && excess->moved >= kLeastExcess;
  const bool from_l2 = excess->passes >= kLeastPasses && facts.roofline().theory != Bound::kCompute;
  if (tiles || (!from_dram && !from_l2)) return std::nullopt;

  const double passes = std::max({excess->reads, excess->passes, 1.0});
  Effect effect;
  if (moved.bytes() > 0) {
    const double reads_after = std::min(moved.reads, least.reads);
    effect.scale(Resource::kDram, (reads_after + moved.writes) / moved.bytes());
  }
  effect.scale(Resource::kL2, 1 / excess->passes).scale(Resource::kL1, 1 / excess->passes);
  // Each pass has its own waits.
  effect.waiting = 1 - memory_wait(facts, 0.6) * (1 - 1 / passes);
  Finding finding = describe(facts, *excess, moved, least, from_dram);
  set_gain(facts, effect, &finding);
  if (const auto most = most_by_samples(facts)) {
    finding.likely_speedup = std::min(finding.likely_speedup, *most);
  }
  if (finding.likely_speedup < kLeastGain) return std::nullopt;
  return finding;
}

constexpr const char* kReReadExcessNeeds[] = {"dram__bytes_read.sum", "dram__bytes_write.sum"};
constexpr const char* kReReadExcessOneOf[] = {"task.compulsory_bytes", "trace.allocated_bytes"};

}  // namespace

extern const Tool kReReadExcess;
const Tool kReReadExcess{.name = "re-read-excess",
                         .summary = "The inputs are read from memory more than once.",
                         .target = ToolTarget::kCuda,
                         .bounds = kNotComputeBound,
                         .needs = kReReadExcessNeeds,
                         .analyse = re_read_excess,
                         .one_of = kReReadExcessOneOf};

}  // namespace kernelpro
