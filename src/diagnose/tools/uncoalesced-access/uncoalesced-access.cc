// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "diagnose/tools/causes.h"
#include "diagnose/tools/traffic.h"

namespace kernelpro {

namespace {

constexpr double kLeastExcess = 1.25;      // sectors over the ideal; 1.25 is one misaligned row
constexpr double kShifted = 1.6;           // up to this, a shifted base explains it
constexpr double kUnusedNeighbours = 1.5;  // bytes moved over bytes needed
constexpr double kQueues = 1.5;
constexpr double kServed = 1.1;     // sectors that miss L1, over the ideal
constexpr double kNoShared = 0.02;  // of L1's wavefronts
constexpr double kPieces = 4;       // sectors over the ideal
constexpr double kQueued = 0.4;     // of the waits
constexpr double kLeastGain = 1.1;
constexpr double kBlamed = 1.5;  // waits that samples blame on others may go with these
constexpr double kMostWaited = 0.97;

// kUnknown: far apart, in an order that the code does not reveal.
enum class Pattern { kStrided, kMisaligned, kScattered, kUnknown };

Pattern pattern_of(const Facts& facts, double excess) {
  if (facts.maybe("sass.hot.global_strided").value_or(0) > 0) return Pattern::kStrided;
  if (excess < kShifted) return Pattern::kMisaligned;
  const double accesses = facts.maybe("sass.hot.global_loads").value_or(0) +
                          facts.maybe("sass.hot.global_stores").value_or(0);
  const double told = facts.maybe("sass.hot.global_unit_stride").value_or(0) +
                      facts.maybe("sass.hot.global_uniform").value_or(0);
  // Side by side along threadIdx.x but not within a warp: the block is narrower than a warp.
  if (accesses > 0 && told >= accesses) return Pattern::kStrided;
  // Neighbors are evicted unused: there is no locality at all.
  const auto moved = dram(facts);
  const auto least = compulsory(facts);
  if (moved && least && moved->bytes() >= kUnusedNeighbours * least->bytes) {
    return Pattern::kScattered;
  }
  return Pattern::kUnknown;
}

// Waits for the queues in front of L1. They back up into the queues shared with shared memory,
// which nothing else fills if shared memory is unused.
double queue_wait(const Facts& facts) {
  const double own = stalls(facts, {Stall::kLgThrottle}, 0);
  return shared_part(facts) < kNoShared ? own + stalls(facts, {Stall::kMioThrottle}, 0) : own;
}

// The work left on each resource after coalescing.
Effect coalesced(const Facts& facts, const Accesses& loads, const Accesses& stores) {
  const double sectors = loads.sectors + stores.sectors;
  const double kept = (loads.ideal + stores.ideal) / std::max(1.0, sectors);
  Effect effect;
  effect.scale(Resource::kL1, 1 - (1 - shared_part(facts)) * (1 - kept));

  // L2 sees only L1 misses. Neighbors that L1 already serves cost L2 nothing.
  const double hits =
      facts.maybe("l1tex__t_sectors_pipe_lsu_mem_global_op_ld_lookup_hit.sum").value_or(0);
  const double misses = std::max(0.0, loads.sectors - hits);
  double kept_misses = loads.ideal;
  if (const auto least = compulsory(facts); least && loads.sectors > 0) {
    // L1 hits stay hits, except for the compulsory reads.
    kept_misses = std::max(least->reads / kSectorBytes, loads.ideal * misses / loads.sectors);
  }
  const double needless_loads = misses - std::min(misses, kept_misses);
  const double needless_stores = stores.sectors - stores.ideal;
  const auto l2 = facts.maybe("lts__t_sectors_srcunit_tex.sum");
  if (l2 && *l2 > 0) {
    const double needless = std::min(0.97, (needless_loads + needless_stores) / *l2);
    effect.scale(Resource::kL2, 1 - needless);
  }
  // Device memory sees only L2 misses.
  const auto moved = dram(facts);
  const auto reads = l2_read_bytes(facts);
  if (moved && moved->bytes() > 0 && reads && *reads > 0) {
    const double missed = std::min(1.0, moved->reads / *reads);
    const double written =
        stores.sectors > 0 ? std::min(1.0, moved->writes / (kSectorBytes * stores.sectors)) : 0;
    const double read_after =
        moved->reads * (1 - missed * std::min(1.0, needless_loads * kSectorBytes / *reads));
    const double write_after =
        moved->writes * (stores.sectors > 0 ? 1 - written * needless_stores / stores.sectors : 1);
    double after = read_after + write_after;
    if (const auto least = compulsory(facts)) {
      after = std::max(after, std::min(least->bytes, moved->bytes()));
    }
    effect.scale(Resource::kDram, after / moved->bytes());
  }
  // A request for many sectors waits for the last one and fills the queues in which all others wait
  // (pairs on an H200: waits fall faster than sectors). If L1 holds the neighbors, a load waits no
  // longer than necessary, except for the queues.
  double waits = queue_wait(facts);
  if (misses > kServed * loads.ideal || needless_stores > needless_loads) {
    waits = std::min(1.0, waits + stalls(facts, {Stall::kLongScoreboard, Stall::kDrain}, 0.7));
  }
  effect.waiting = std::pow(1 - waits * (1 - kept), kQueues);
  return effect;
}

// The thread's other accesses fill the gaps between lanes: fields of a structure.
bool fields(const Facts& facts) {
  const double strided = facts.maybe("sass.hot.global_strided").value_or(0);
  return strided > 0 && facts.maybe("sass.hot.global_strided_filled").value_or(0) >= 0.5 * strided;
}

std::string described(const Accesses& some, const char* what) {
  return "A warp's global " + std::string(what) + " touches " + number(some.per_request(), 3) +
         " sectors of 32 B where " + number(some.ideal_per_request(), 3) +
         " would hold its data, so " + percent(1 - 1 / some.excess()) + " of the traffic is waste";
}

std::vector<Prescription> for_scattered() {
  return {
      {"layout",
       "Let neighboring threads fetch from one row: 8 to 32 consecutive lanes read one gathered "
       "row together, 16 B each, instead of one row per lane.",
       "a gathered item is a single element"},
      {"algorithm", "Sort or bucket the indices so that a warp's addresses fall close together.",
       "the indices change with every call and are used once"},
      {"shared-memory", "Keep the gathered table in shared memory if it fits.",
       "the table is larger than shared memory"}};
}

Prescription for_pieces() {
  return {"vectorize",
          "Move each thread's 16 bytes with one access: start at an aligned address (peel the "
          "first elements), and where source and target are aligned differently, load aligned and "
          "shift between neighbors (`__shfl`, `__byte_perm`) or through shared memory.",
          "the data is already aligned; then express it in the type (`float4`, `uint4`)"};
}

void prescribe(Pattern pattern, Finding* finding) {
  if (pattern == Pattern::kMisaligned) {
    finding->prescriptions = {
        {"layout",
         "Align rows and bases: pad the row pitch to a multiple of 128 B, and start each warp at a "
         "128-byte boundary (peel the first elements of a row).",
         "the tensor's layout is fixed and rows cannot be peeled"},
        {"shared-memory",
         "Load the block's whole range once, aligned, into shared memory and read the shifted "
         "neighbors there.",
         "L1 already serves the overlap"}};
    return;
  }
  if (pattern == Pattern::kScattered) {
    finding->prescriptions = for_scattered();
    return;
  }
  finding->prescriptions = {
      {"layout",
       "Let `threadIdx.x` run along the contiguous dimension, so that consecutive lanes read "
       "consecutive addresses.",
       "the other operand would become strided"},
      {"shared-memory",
       "Where one side must be strided (a transpose), go through a shared-memory tile: load rows, "
       "`__syncthreads()`, store columns; pad the tile (`[32][33]`) against bank conflicts.",
       "the data is used only along one dimension"},
      {"layout",
       "Keep fields in separate arrays (structure of arrays), or load a whole structure per thread "
       "with one 128-bit access.",
       "the layout is fixed by the task and no structure fits 16 B"}};
  if (pattern == Pattern::kUnknown) finding->prescriptions.push_back(for_scattered().front());
}

// A thread reads adjacent elements in many narrow accesses. L1 serves the neighbors, but the queue
// in front of it still fills up.
bool in_pieces(const Facts& facts, const Accesses& loads, const Accesses& stores) {
  return chunked(facts) && std::max(loads.excess(), stores.excess()) >= kPieces &&
         stalls(facts, {Stall::kLgThrottle, Stall::kMioThrottle}, 0) >= kQueued;
}

bool is_global_access(std::string_view instruction) {
  return executes(instruction, "LDG") || executes(instruction, "STG");
}

// What samples blame on global accesses is all that can go: beside bulk copies, or behind the
// barriers of roles, other waits look the same to counters.
void bound_by_samples(const Facts& facts, Finding* finding) {
  const Places* places = facts.places();
  if (places == nullptr || places->basis != Places::Basis::kSampled) return;
  const double waited =
      exposed_by(facts, is_global_access) + exposed(facts, {Stall::kDrain}).value_or(0);
  const double most = 1 / (1 - std::min(kMostWaited, kBlamed * waited));
  finding->upper_speedup = std::min(finding->upper_speedup, most);
  finding->likely_speedup = std::min(finding->likely_speedup, most);
}

std::optional<Finding> counted(const Facts& facts) {
  const auto loads = global_loads(facts);
  const auto stores = global_stores(facts);
  const Accesses none;
  const Accesses& reads = loads ? *loads : none;
  const Accesses& writes = stores ? *stores : none;
  const bool pieces = in_pieces(facts, reads, writes);
  const double excess = pieces ? std::max(reads.excess(), writes.excess()) : worst_excess(facts);
  if (excess < kLeastExcess) return std::nullopt;
  const bool load_side = reads.sectors - reads.ideal >= writes.sectors - writes.ideal;
  const Pattern pattern = pattern_of(facts, excess);

  Finding finding;
  set_gain(facts, coalesced(facts, reads, writes), &finding);
  // A shifted base costs less than its sectors suggest: the neighboring warp finds the rest in a
  // cache. A gather often cannot be fixed at all.
  if (pattern == Pattern::kMisaligned || pattern == Pattern::kScattered) {
    finding.likely_speedup = middle(1, finding.likely_speedup);
  }
  bound_by_samples(facts, &finding);
  if (finding.likely_speedup < kLeastGain) return std::nullopt;
  finding.severity = excess >= 3 ? Severity::kCritical : Severity::kWarning;
  finding.cause = described(load_side ? reads : writes, load_side ? "load" : "store");
  const double stride = facts.maybe("sass.hot.global_lane_stride").value_or(0);
  if (pattern == Pattern::kStrided && stride > 0) {
    finding.cause += ": lanes are " + number(stride) + " B apart.";
  } else if (pattern == Pattern::kMisaligned) {
    finding.cause += ": accesses straddle sector boundaries.";
  } else if (pattern == Pattern::kScattered) {
    finding.cause += ": lanes gather from addresses that are far apart.";
  } else {
    finding.cause += ": consecutive lanes are far apart in memory.";
  }
  const std::string direction = load_side ? "ld" : "st";
  finding.metrics = {"l1tex__t_sectors_pipe_lsu_mem_global_op_" + direction + ".sum",
                     "l1tex__t_requests_pipe_lsu_mem_global_op_" + direction + ".sum"};
  finding.sites = line_of(facts, {"sass.hot.global_strided",
                                  load_side ? "sass.hot.global_loads" : "sass.hot.global_stores"});
  prescribe(pattern, &finding);
  if (pieces) {
    finding.cause +=
        " Each thread's accesses are adjacent, but the compiler cannot tell that they are aligned.";
    finding.prescriptions.insert(finding.prescriptions.begin(), for_pieces());
  } else if (pattern == Pattern::kStrided && fields(facts)) {
    std::rotate(finding.prescriptions.begin(), finding.prescriptions.end() - 1,
                finding.prescriptions.end());
  }
  return finding;
}

// From machine code alone: lanes are known to leave gaps.
std::optional<Finding> from_code(const Facts& facts) {
  const double accesses = facts.maybe("sass.hot.global_loads").value_or(0) +
                          facts.maybe("sass.hot.global_stores").value_or(0);
  const double strided = facts.maybe("sass.hot.global_strided").value_or(0);
  const double stride = facts.maybe("sass.hot.global_lane_stride").value_or(0);
  if (accesses <= 0 || strided < 0.25 * accesses || chunked(facts)) return std::nullopt;
  if (stride > 0 && stride < 8) return std::nullopt;
  const Roofline& roof = facts.roofline();
  if (roof.known() && roof.fraction >= 0.6) return std::nullopt;
  // A strided access of 4 B may take a whole sector.
  const double sectors = (stride > 0 ? std::min(stride, kSectorBytes) : kSectorBytes) / 4;
  const double part = strided / accesses;
  const double kept = 1 / (1 - part + part * sectors);
  Effect effect;
  effect.waiting = std::sqrt(kept);
  Finding finding;
  set_gain(facts, effect, &finding);
  finding.upper_speedup = std::max(finding.upper_speedup, 1 / kept);
  if (finding.likely_speedup < kLeastGain) return std::nullopt;
  finding.severity = Severity::kWarning;
  finding.cause = number(strided) + " of " + number(accesses) +
                  " global accesses in the hot loop have lanes " +
                  (stride > 0 ? number(stride) + " B apart" : std::string("a row apart")) +
                  ", so each lane moves a sector of 32 B for its few bytes.";
  finding.metrics = {"sass.hot.global_strided", "sass.hot.global_lane_stride"};
  finding.sites =
      joined({line_of(facts, {"sass.hot.global_strided"}), line_of(facts, {"slice.global"})});
  prescribe(Pattern::kStrided, &finding);
  return finding;
}

std::optional<Finding> uncoalesced_access(const Facts& facts) {
  return global_loads(facts) || global_stores(facts) ? counted(facts) : from_code(facts);
}

constexpr const char* kUncoalescedAccessOneOf[] = {"l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
                                                   "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",
                                                   "sass.hot.global_strided"};

}  // namespace

extern const Tool kUncoalescedAccess;
const Tool kUncoalescedAccess{
    .name = "uncoalesced-access",
    .summary = "Lanes of a warp touch more memory sectors than their data needs.",
    .target = ToolTarget::kCuda,
    .bounds = kNotComputeBound,
    .analyse = uncoalesced_access,
    .one_of = kUncoalescedAccessOneOf};

}  // namespace kernelpro
