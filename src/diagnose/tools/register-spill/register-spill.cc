// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "diagnose/tools/causes.h"
#include "diagnose/tools/traffic.h"

namespace kernelpro {

namespace {

// In issue slots of a multiprocessor, which issues four instructions per cycle but sends one
// 32-lane access per cycle to its L1 cache (128 B), and about a quarter of that to the L2 cache.
constexpr double kL1Slots = 4;
constexpr double kL2Slots = 16;
constexpr double kSelected = 0.5;    // of the lanes masked off by branches, in logarithms
constexpr double kLeastPart = 0.05;  // of the sectors that L1 looks up
constexpr double kLeastGain = 1.05;
constexpr double kHeldUp = 1.35;     // exponent of the speedup: work that waits behind them
constexpr double kAddress = 2;       // instructions, of an access to an array at a variable index
constexpr double kGone = 0.95;       // of what samples show
constexpr double kMostShown = 0.95;  // of the kernel's time

struct Local {
  double hot = 0;           // local accesses in the hot loops
  double instructions = 1;  // of the hot loops
  double others = 0;        // other accesses there
  double part() const { return hot > 0 ? hot / (hot + others) : 0; }
};

Local local_of(const Facts& facts) {
  Local local;
  local.hot = facts.maybe("sass.hot.local_loads").value_or(0) +
              facts.maybe("sass.hot.local_stores").value_or(0);
  local.instructions = std::max(1.0, facts.maybe("sass.hot.instructions").value_or(1));
  for (const char* name : {"sass.hot.global_loads", "sass.hot.global_stores",
                           "sass.hot.shared_loads", "sass.hot.shared_stores"}) {
    local.others += facts.maybe(name).value_or(0);
  }
  return local;
}

// Bottleneck model of one pass of the hot loop, with and without its local accesses.
void estimate_from_code(const Facts& facts, const Local& local, Finding* finding) {
  const double kept = std::max(local.instructions - local.hot, 1.0);
  // At best, all local accesses hit L1 and overlap with arithmetic.
  const double after = std::max(kept, kL1Slots * local.others);
  const double low = std::max(kept + local.hot, kL1Slots * (local.others + local.hot)) / after;
  // At worst, they go to L2 and everything waits for them.
  const double serial = kept + kL1Slots * local.others;
  const double high = (serial + kL2Slots * local.hot) / serial;
  const Roofline& roof = facts.roofline();
  finding->upper_speedup = std::max(low, high);
  finding->likely_speedup = middle(
      low, roof.known() ? std::min(finding->upper_speedup, roof.most()) : finding->upper_speedup);
}

// The fraction of active lanes, if nothing spills and each divergent branch in the hot loops has
// its own accesses to the array; else 1.
double lanes_of_branches(const Facts& facts, const Local& local) {
  const double regions = facts.maybe("sass.hot.divergent_regions").value_or(0);
  const double warp = facts.maybe("smsp__inst_executed.sum").value_or(0);
  const auto lanes = facts.maybe("smsp__thread_inst_executed.sum");
  if (facts.maybe("ptxas.spill_store_bytes").value_or(0) > 0 || regions <= 0 ||
      local.hot < regions || warp <= 0 || !lanes) {
    return 1;
  }
  return std::clamp(*lanes / warp / 32, 1.0 / 32, 1.0);
}

// `part`: of the sectors that L1 looks up.
void estimate_from_counters(const Facts& facts, const Local& local, double part, Finding* finding) {
  Effect effect;
  effect.scale(Resource::kL1, 1 - (1 - shared_part(facts)) * part);
  effect.scale(Resource::kL2, 1 - 0.9 * part);
  effect.scale(Resource::kLsu, 1 - std::max(local.part(), part * 0.5));
  effect.scale(Resource::kIssue, 1 - std::min(0.6, local.hot / local.instructions));
  const auto moved = dram(facts);
  if (moved && moved->bytes() > 0) {
    double after = moved->bytes() * (1 - 0.9 * part);
    if (const auto least = compulsory(facts)) {
      after = std::clamp(std::min(after, least->bytes), 0.0, moved->bytes());
    }
    effect.scale(Resource::kDram, after / moved->bytes());
  }
  effect.waiting = 1 - memory_wait(facts, 0.6) * std::max(part, local.part());
  // Fixed array positions remove the branches that searched for them; selects stay.
  const double lanes = std::pow(lanes_of_branches(facts, local), kSelected);
  effect.scale(Resource::kIssue, lanes).scale(Resource::kAlu, lanes);
  effect.waiting *= lanes;
  set_gain(facts, effect, finding);
}

bool loads_local(std::string_view instruction) {
  return instruction.find("LDL") != std::string_view::npos;
}
bool is_local(std::string_view instruction) {
  return loads_local(instruction) || instruction.find("STL") != std::string_view::npos;
}

// Waits for what local memory answers, and of its loads for their addresses, by samples.
double awaited(const Places& places) {
  double sum = 0;
  for (const Place& place : places.places) {
    if (stall_row(place.stall).cause != StallCause::kProducer) continue;
    if (loads_local(place.at.instruction)) {  // for its address
      sum += place.exposed;
      continue;
    }
    for (const Producer& producer : place.producers) {
      if (is_local(producer.at.instruction)) sum += place.exposed * producer.part;
    }
  }
  return sum;
}

// By samples: waits for local memory, what waits for room in the queues that it fills, as large a
// part of the waits for warps that come late to a barrier, and issuing. 0: not sampled. `part`: of
// the sectors that L1 looks up.
double time_of_local(const Facts& facts, const Local& local, double part) {
  const Places* places = facts.places();
  const KernelAccount* account = facts.account();
  if (places == nullptr || places->basis != Places::Basis::kSampled || account == nullptr) return 0;
  const double blamed = exposed_by(facts, is_local);
  if (blamed <= 0) return 0;
  const double queues = exposed(facts, {Stall::kLgThrottle, Stall::kMioThrottle}).value_or(0);
  const double shared = shared_part(facts);
  const double waits = std::max(blamed, awaited(*places) + queues * part * (1 - shared));
  const double barrier = exposed(facts, {Stall::kBarrier}).value_or(0);
  const double others = std::max(waits, 1 - account->issuing - barrier);
  const double each = 1 + (facts.maybe("ptxas.spill_store_bytes").value_or(1) > 0 ? 0 : kAddress);
  const double issued = account->issuing * std::min(1.0, each * local.hot / local.instructions);
  return kGone * std::min(kMostShown, waits + barrier * waits / others + issued);
}

void describe_spill(const Facts& facts, double spills, const std::string& run, Finding* finding) {
  const auto registers = facts.maybe("launch__registers_per_thread");
  finding->cause = number(spills) + " B of registers are spilled per thread" +
                   (registers ? " at " + number(*registers) + " registers" : std::string()) + "; " +
                   run;
  finding->prescriptions = {
      {"registers",
       "Allow more registers per thread: fewer minimum blocks in `__launch_bounds__`, no "
       "`--maxrregcount`.",
       "the kernel is already at 255 registers"},
      {"tile-size", "Compute a smaller tile per thread, so that fewer values are live at once.",
       "the tile feeds the tensor cores; then split it among more warps"},
      {"unroll", "Unroll less (`#pragma unroll 4`), or recompute values instead of keeping them.",
       ""}};
}

void describe_array(double stack, const std::string& run, Finding* finding) {
  finding->cause = (stack > 0 ? "A local array of " + number(stack) + " B" : "A local array") +
                   std::string(
                       " is indexed at run time, so it lives in local memory (nothing "
                       "spills); ") +
                   run;
  finding->prescriptions = {
      {"unroll",
       "Make its indices compile-time constants: unroll the loops over it fully, or select with "
       "a `switch`.",
       "the trip count is not known at compile time"},
      {"shared-memory", "Put a table that must be indexed at run time into shared memory.",
       "shared memory would limit the resident blocks"}};
}

// For a report without compiler output.
void describe_either(const std::string& run, Finding* finding) {
  finding->cause =
      "Spilled registers, or an array that is indexed at run time, live in local memory; " + run;
  finding->prescriptions = {
      {"registers",
       "Find out which: compile with `-Xptxas -v`. Spills need more registers (fewer minimum "
       "blocks in `__launch_bounds__`) or a smaller tile per thread.",
       ""},
      {"unroll",
       "An array needs indices that are compile-time constants: unroll the loops over it fully.",
       "the trip count is not known at compile time"}};
}

std::optional<Finding> register_spill(const Facts& facts) {
  const double stores = facts.maybe("ptxas.spill_store_bytes").value_or(0);
  const double spills = stores + facts.maybe("ptxas.spill_load_bytes").value_or(0);
  const double stack = facts.maybe("ptxas.stack_bytes").value_or(0);
  const Local local = local_of(facts);
  const auto part = local_part(facts);
  if (part) {
    // By counters, spills outside the hot loop (prologue, slow path) cost little.
    if (*part < kLeastPart) return std::nullopt;
  } else if (local.hot <= 0 || (spills <= 0 && stack <= 0)) {
    return std::nullopt;
  }

  Finding finding;
  finding.severity = Severity::kCritical;
  finding.metrics = {"ptxas.spill_store_bytes", "ptxas.spill_load_bytes", "ptxas.stack_bytes",
                     "sass.hot.local_loads", "sass.hot.local_stores"};
  std::string run = number(local.hot) + " of the hot loop's " + number(local.instructions) +
                    " instructions are LDL or STL.";
  if (part) {
    run = percent(*part) + " of the sectors that L1 looks up belong to local memory.";
    finding.metrics.emplace_back("l1tex__t_sectors_pipe_lsu_mem_local_op_ld.sum");
    finding.metrics.emplace_back("l1tex__t_sectors_pipe_lsu_mem_local_op_st.sum");
    estimate_from_counters(facts, local, *part, &finding);
    const double sampled = std::pow(speedup_without(time_of_local(facts, local, *part)), kHeldUp);
    finding.likely_speedup = std::max(finding.likely_speedup, sampled);
    finding.upper_speedup = std::max(finding.upper_speedup, sampled);
    if (finding.likely_speedup < kLeastGain) return std::nullopt;
  } else {
    estimate_from_code(facts, local, &finding);
  }
  const bool known = facts.maybe("ptxas.spill_store_bytes") || facts.maybe("ptxas.stack_bytes");
  // Each spilled register is stored at least once, so a larger frame holds an array.
  if (!known) {
    describe_either(run, &finding);
  } else if (spills > 0 && stack <= 2 * std::max(stores, 1.0)) {
    describe_spill(facts, spills, run, &finding);
  } else {
    describe_array(stack, run, &finding);
  }
  const bool bounded = has_site(facts, SiteKind::kBounds, "registers");
  finding.sites = joined(
      {bounded ? site_of(facts, {SiteKind::kBounds}) : FindingSites{},
       line_of(facts, {"sass.hot.local_loads", "sass.hot.local_stores", "sass.local_loads"}),
       array_of(facts, SiteKind::kLocalArray, {"sass.hot.local_loads", "sass.hot.local_stores"})});
  return finding;
}

constexpr const char* kRegisterSpillOneOf[] = {"l1tex__t_sectors_pipe_lsu_mem_local_op_ld.sum",
                                               "sass.hot.local_loads"};

}  // namespace

extern const Tool kRegisterSpill;
const Tool kRegisterSpill{
    .name = "register-spill",
    .summary = "Registers, or an array indexed at run time, live in local memory.",
    .target = ToolTarget::kCuda,
    .analyse = register_spill,
    .one_of = kRegisterSpillOneOf};

}  // namespace kernelpro
