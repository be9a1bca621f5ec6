// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/text.h"
#include "diagnose/tools/causes.h"
#include "diagnose/tools/traffic.h"

namespace kernelpro {

namespace {

constexpr double kLeastExcess = 1.5;  // bytes stored over bytes of the outputs
constexpr double kPartialSectors = 1.1;
constexpr double kLeastFill = 0.25;  // reads beyond the inputs, of the outputs
constexpr double kLeastGain = 1.08;

std::optional<Finding> written_again(const Facts& facts, const Accesses& stores,
                                     const Compulsory& least, const Dram& moved) {
  // Useful bytes of the stores: half-full sectors are a different flaw.
  const double stored = stores.ideal * kSectorBytes;
  const double again = stored / least.writes;
  const double drained = moved.writes / least.writes;
  if (std::max(again, drained) < kLeastExcess) return std::nullopt;
  const double kept = 1 / std::max(again, 1.0);
  const auto loads = global_loads(facts);
  const double sectors = stores.sectors + (loads ? loads->sectors : 0);
  const double less = stores.sectors * (1 - kept);  // removed stores, and as many loads
  const double loads_less =
      loads ? std::min(less, std::max(0.0, loads->sectors - stores.sectors * kept)) *
                  (again >= 2 ? 1 : 0)
            : 0;
  const double part = sectors > 0 ? (less + loads_less) / sectors : 0;

  Effect effect;
  effect.scale(Resource::kL1, 1 - (1 - shared_part(facts)) * part * 0.9);
  if (const auto l2 = facts.maybe("lts__t_sectors_srcunit_tex.sum"); l2 && *l2 > 0) {
    const double hits =
        facts.maybe("l1tex__t_sectors_pipe_lsu_mem_global_op_ld_lookup_hit.sum").value_or(0);
    const double missed = loads && loads->sectors > 0 ? 1 - hits / loads->sectors : 1;
    effect.scale(Resource::kL2, 1 - std::min(0.95, (less + missed * loads_less) / *l2));
  }
  if (moved.bytes() > 0) {
    const double after = moved.reads + std::min(moved.writes, least.writes);
    effect.scale(Resource::kDram, after / moved.bytes());
  }
  effect.waiting = 1 - memory_wait(facts, 0.5) * part;
  Finding finding;
  set_gain(facts, effect, &finding);
  finding.severity = again >= 4 ? Severity::kCritical : Severity::kWarning;
  finding.cause = "The kernel stores " + human_bytes(stored) + " for " + human_bytes(least.writes) +
                  " of outputs (" + times(again) + "), and device memory writes " + times(drained) +
                  " the outputs: results are stored more than once.";
  finding.metrics = {"l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum", "dram__bytes_write.sum",
                     "task.output_bytes"};
  finding.prescriptions = {
      {"registers",
       "Accumulate in registers (or shared memory) and store each output once, after the loop.",
       "the accumulators exceed the registers; then tile the outputs"},
      {"fusion", "Do not store intermediates: use them in the same pass, or recompute them.",
       "a later kernel needs them"},
      {"vectorize", "Store the intermediates that must remain in a narrower type.",
       "the precision does not allow it"}};
  return finding;
}

std::optional<Finding> partial_sectors(const Facts& facts, const Accesses& stores,
                                       const Compulsory& least, const Dram& moved) {
  const double fill = (moved.reads - least.reads) / least.writes;
  if (stores.excess() < kPartialSectors || fill < kLeastFill) return std::nullopt;
  Effect effect;
  const double after = least.reads + std::min(moved.writes, least.writes);
  effect.scale(Resource::kDram, std::min(1.0, after / moved.bytes()));
  const auto l2 = facts.maybe("lts__t_sectors_srcunit_tex.sum");
  if (l2 && *l2 > 0) {
    effect.scale(Resource::kL2, 1 - std::min(0.9, (stores.sectors - stores.ideal) / *l2));
  }
  effect.waiting = 1 - 0.3 * memory_wait(facts, 0.5);
  Finding finding;
  set_gain(facts, effect, &finding);
  finding.severity = Severity::kWarning;
  finding.cause = "Stores fill their 32-byte sectors only partly (" +
                  number(stores.per_request(), 3) + " sectors per request, ideal " +
                  number(stores.ideal_per_request(), 3) + "), so memory reads " +
                  human_bytes(moved.reads - least.reads) +
                  " beyond the inputs to fill up partly written sectors.";
  finding.metrics = {"l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",
                     "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum", "dram__bytes_read.sum"};
  finding.prescriptions = {
      {"layout",
       "Write whole, aligned sectors: let consecutive lanes store consecutive addresses, and pad "
       "the output's pitch to a multiple of 32 B.",
       "the output's layout is fixed and its rows are unaligned"},
      {"shared-memory", "Collect the output tile in shared memory and store it row by row.",
       "shared memory would limit the resident blocks"}};
  return finding;
}

std::optional<Finding> excess_writes(const Facts& facts) {
  const auto stores = global_stores(facts);
  const auto least = compulsory(facts);
  const auto moved = dram(facts);
  if (!stores || !least || !moved || !least->split || least->writes <= 0) return std::nullopt;
  // Leave scattered stores to uncoalesced-access.
  if (stores->excess() >= 2 && stores->ideal * kSectorBytes < 2 * least->writes) {
    return std::nullopt;
  }
  // Tiny outputs, e.g. of a sum: the blocks' partial results exceed them.
  if (stores->ideal * kSectorBytes < 0.1 * least->bytes) return std::nullopt;
  std::optional<Finding> finding = written_again(facts, *stores, *least, *moved);
  if (!finding) finding = partial_sectors(facts, *stores, *least, *moved);
  if (!finding || finding->likely_speedup < kLeastGain) return std::nullopt;
  finding->sites = line_of(facts, {"sass.hot.global_stores"});
  return finding;
}

constexpr const char* kExcessWritesNeeds[] = {"dram__bytes_read.sum",
                                              "dram__bytes_write.sum",
                                              "task.compulsory_bytes",
                                              "task.output_bytes",
                                              "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",
                                              "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum"};

}  // namespace

extern const Tool kExcessWrites;
const Tool kExcessWrites{.name = "excess-writes",
                         .summary = "Results are stored more than once, or in partial sectors.",
                         .target = ToolTarget::kCuda,
                         .bounds = kNotComputeBound,
                         .needs = kExcessWritesNeeds,
                         .analyse = excess_writes};

}  // namespace kernelpro
