// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "diagnose/tools/causes.h"
#include "diagnose/tools/traffic.h"

namespace kernelpro {

namespace {

constexpr double kLoadsPerProduct = 0.8;
constexpr double kWithRegisters = 1.8;
constexpr double kLeastReuse = 6;  // bytes requested of L1 over bytes that device memory must move
constexpr double kLeastBusy = 0.5;
constexpr double kBusyForReuse = 0.8;
// How far a first tiled kernel gets toward the ceiling, in logarithms (an H200: 0.65 to 0.75).
constexpr double kFirstTiling = 0.65;
constexpr double kMostLikely = 6;
constexpr double kLeastGain = 1.15;
// The work left after a first tiling: each loaded element serves several products, through shared
// memory.
constexpr double kKept = 0.5;

// Lanes side by side or on one address: shared data in an order that tiles can use.
bool regular(const Facts& facts) {
  const auto loads = facts.maybe("sass.hot.global_loads");
  const auto unit = facts.maybe("sass.hot.global_unit_stride");
  const auto uniform = facts.maybe("sass.hot.global_uniform");
  if (!loads || !unit || !uniform || *loads <= 0) return true;
  return *unit + *uniform >= 0.4 * *loads;
}

bool has_staging(const Facts& facts) {
  for (const char* name : {"sass.shared_loads", "sass.hot.shared_loads", "sass.bulk_copies",
                           "sass.ldgsts", "sass.hgmma"}) {
    if (facts.maybe(name).value_or(0) > 0) return true;
  }
  const double shared =
      facts.maybe("l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum").value_or(0);
  const auto loads = facts.maybe("l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum");
  return loads && shared > 0.1 * *loads;
}

std::vector<Prescription> advice() {
  return {
      {"shared-memory",
       "Load tiles of the operands into shared memory once per block (`__syncthreads()`), and "
       "let all threads of the block read them there.",
       "only one thread uses each operand"},
      {"tile-size",
       "Compute several outputs per thread (4x4 or 8x8) in registers: each value read from "
       "shared memory then serves several multiply-adds.",
       "registers would spill or the grid would become too small"},
      {"pipeline", "Copy the next tile asynchronously (`cp.async`, TMA) while this one is used.",
       "shared memory would limit the resident blocks"}};
}

double tiled_gain(const Roofline& roof) {
  return std::min(kMostLikely, std::pow(roof.headroom(), kFirstTiling));
}

std::optional<Finding> counted(const Facts& facts, const Accesses& loads) {
  const auto moved = dram(facts);
  const auto least = compulsory(facts);
  const double once = std::max(moved ? moved->bytes() : 0, least ? least->bytes : 0);
  const double asked = loads.sectors * kSectorBytes;
  if (once <= 0 || asked < kLeastReuse * once) return std::nullopt;
  // Scattered lanes request more than they use; fix that first.
  if (loads.excess() >= 2) return std::nullopt;
  const KernelModel& model = facts.model();
  const double busy = std::max(
      {model.demand(Resource::kL1), model.demand(Resource::kL2), model.demand(Resource::kLsu)});
  const double waits = memory_wait(facts, 0.5);
  if (busy < kLeastBusy && waits < kLeastBusy) return std::nullopt;

  Effect effect;
  effect.scale(Resource::kL1, kKept).scale(Resource::kL2, kKept).scale(Resource::kLsu, kKept);
  effect.scale(Resource::kIssue, 0.7).scale(Resource::kAlu, 0.7);
  effect.waiting = 1 - waits * (1 - kKept);
  Finding finding;
  set_gain(facts, effect, &finding);
  Effect most = effect;
  most.scale(Resource::kL1, 0.25).scale(Resource::kL2, 0.25).scale(Resource::kLsu, 0.25);
  most.scale(Resource::kIssue, 0.5).scale(Resource::kAlu, 0.5);
  finding.upper_speedup = std::max(finding.upper_speedup, model.gain(most).upper);
  // A load for each multiply-add: with several outputs a thread, registers serve most of them.
  const double products = facts.maybe("sass.hot.ffma").value_or(0);
  if (products > 0 &&
      facts.maybe("sass.hot.global_loads").value_or(0) >= kLoadsPerProduct * products) {
    finding.likely_speedup = middle(finding.likely_speedup, finding.upper_speedup);
    finding.upper_speedup *= kWithRegisters;
  }
  // If arithmetic is the theoretical limit, tiling gets a kernel most of the way there.
  const Roofline& roof = facts.roofline();
  if (roof.known() && roof.theory == Bound::kCompute && busy >= kBusyForReuse) {
    finding.likely_speedup = std::max(finding.likely_speedup, tiled_gain(roof));
    finding.upper_speedup = std::max(finding.upper_speedup, roof.most());
  }
  if (finding.likely_speedup < kLeastGain) return std::nullopt;
  finding.severity = Severity::kCritical;
  finding.cause = "The threads load " + human_bytes(asked) + " from L1 where " + human_bytes(once) +
                  " would be enough (" + times(asked / once) +
                  "): they use the same operands, but each thread fetches its own copy.";
  finding.metrics = {"l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
                     "l1tex__data_pipe_lsu_wavefronts.avg.pct_of_peak_sustained_elapsed"};
  finding.metrics.emplace_back(least && least->bytes >= once ? "task.compulsory_bytes"
                                                             : "dram__bytes_read.sum");
  finding.sites = joined(
      {line_of(facts, {"sass.hot.global_loads"}), loop_of(facts, {"sass.hot.global_loads"})});
  finding.prescriptions = advice();
  return finding;
}

// From machine code and timing: about one load per multiply-add in a compute-bound task.
std::optional<Finding> from_code(const Facts& facts) {
  const double loads = facts.maybe("sass.hot.global_loads").value_or(0);
  const double products = facts.maybe("sass.hot.ffma").value_or(0) +
                          facts.maybe("sass.hot.half_math").value_or(0) +
                          facts.maybe("sass.hot.fp64").value_or(0);
  const Roofline& roof = facts.roofline();
  const bool reuse = roof.theory == Bound::kCompute || roof.theory == Bound::kMixed;
  if (!roof.known() || !reuse || roof.fraction >= 0.3) return std::nullopt;
  if (loads <= 0 || products <= 0 || loads < 0.3 * products) return std::nullopt;
  if (facts.maybe("sass.hot.global_strided").value_or(0) >= 0.25 * loads) return std::nullopt;
  Finding finding;
  finding.severity = Severity::kWarning;
  finding.cause = number(loads) + " global loads serve " + number(products) +
                  " multiply-adds in the hot loop, without shared memory: operands are fetched "
                  "again for nearly every product.";
  finding.metrics = {"sass.hot.global_loads", "sass.hot.ffma", "sass.hot.shared_loads"};
  finding.sites = joined(
      {line_of(facts, {"sass.hot.global_loads"}), loop_of(facts, {"sass.hot.global_loads"})});
  finding.prescriptions = advice();
  finding.upper_speedup = roof.most();
  finding.likely_speedup = tiled_gain(roof);
  return finding;
}

std::optional<Finding> missing_shared_memory_tiling(const Facts& facts) {
  if (has_staging(facts) || !regular(facts)) return std::nullopt;
  const auto loads = global_loads(facts);
  return loads ? counted(facts, *loads) : from_code(facts);
}

constexpr const char* kMissingSharedMemoryTilingOneOf[] = {
    "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum", "sass.hot.global_loads"};

}  // namespace

extern const Tool kMissingSharedMemoryTiling;
const Tool kMissingSharedMemoryTiling{
    .name = "missing-shared-memory-tiling",
    .summary = "Threads use the same operands, but each fetches its own copy.",
    .target = ToolTarget::kCuda,
    .analyse = missing_shared_memory_tiling,
    .one_of = kMissingSharedMemoryTilingOneOf};

}  // namespace kernelpro
