// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <vector>

#include "base/text.h"
#include "core/machine/architecture.h"
#include "diagnose/account/make_account.h"
#include "diagnose/tools/causes.h"
#include "diagnose/tools/traffic.h"

namespace kernelpro {

namespace {
constexpr double kLeastShare = 0.08;
constexpr double kStartUs = 1.5;    // of a kernel that depends on the previous one
constexpr double kL2Bytes = 126e6;  // the largest of today's GPUs (a B200's)
constexpr double kCounted = 0.9;    // of the time, by kernels with counters
// Intermediates this much larger than a half-precision output are kept in a wider type.
constexpr double kWider = 1.6;
// More implied traffic than the time allows: the buffers were not passed on whole.
constexpr double kPlausible = 1.3;
constexpr double kWhole = 0.9;  // of the buffers' bytes: they were passed on whole
// Above this, the whole call runs at memory speed, and time is proportional to bytes.
constexpr double kMemoryBound = 0.6;

// Of what is handed over together with a summary of all of it: some designs keep it on chip.
constexpr double kNeedsAll = 0.5;

// Of a chain of many kernels neighbours are fused, and seldom all of it.
constexpr double kLongChain = 8;  // kernels that read what an earlier one wrote
constexpr double kNeighbours = 0.5;

constexpr std::size_t kMostNamed = 5;  // operators of a chain
// The part of PyTorch's own passes over memory that one fused kernel saves.
constexpr double kFusable = 0.7;
constexpr double kLeastTraced = 0.25;
constexpr double kMemoryPaced = 0.6;  // of device memory's peak
constexpr double kInAndOut = 1.5;     // some of what is allocated is read and written
constexpr double kFusedPasses = 0.9;

std::vector<Prescription> advice() {
  return {{"fusion",
           "Compute the chain in one kernel: apply elementwise steps where the value is produced "
           "(epilogue) or where it is read (prologue), so that it stays in registers or shared "
           "memory.",
           "the next step needs results of all blocks before it can start, or the fused kernel "
           "would spill or recompute more than it saves"},
          {"passes",
           "Where one block can hold a row, fuse a reduction with the step that follows: keep the "
           "row on chip between the two.",
           "rows are longer than a block's or cluster's shared memory and registers"}};
}

// What the kernels moved to and from device memory beyond the compulsory bytes: buffers are seldom
// passed on whole, and L2 keeps some. Infinite where it was not counted.
double beyond_compulsory(const Facts& facts) {
  const auto moved = device_bytes(facts.kernels());
  if (!moved) return std::numeric_limits<double>::infinity();
  return std::max(0.0, *moved - facts.maybe("task.compulsory_bytes").value_or(0));
}

// What the kernels stored: their warps' stores or, where bulk copies or atomics store as well, what
// reached device memory and what L2 may still hold. No more can pass on, however large the buffers
// are. Infinite where it was not counted.
double stored(const Facts& facts) {
  double all = 0, counted = 0;
  for (const KernelEvidence& kernel : facts.kernels()) {
    const auto sectors = kernel.facts.get("l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum");
    const auto drained = kernel.facts.get("dram__bytes_write.sum");
    if (!sectors || !drained) continue;
    const bool others = kernel.facts.get("sass.bulk_copies").value_or(1) > 0 ||
                        kernel.facts.get("sass.global_atomics").value_or(1) > 0;
    all += std::max(*sectors * kSectorBytes, others ? *drained + kL2Bytes : 0);
    counted += kernel.facts.get("kernel.share").value_or(0);
  }
  return counted >= kCounted ? all : std::numeric_limits<double>::infinity();
}

// The operands that kernels prepare for the one that multiplies them on matrix units: split, padded
// or laid out once. Fused, every block that reads them would do that again.
double prepared(const Facts& facts) {
  double bytes = 0;
  int multiply = 0;
  for (const KernelEvidence& kernel : facts.kernels()) {
    if (kernel.facts.get("sass.hgmma").value_or(0) + kernel.facts.get("sass.hmma").value_or(0) <= 0)
      continue;
    ++multiply;
    bytes += kernel.facts.get("kernel.handed_bytes").value_or(0);
  }
  return multiply == 1 ? bytes : 0;
}

// The part of what kernels hand over that fusing them saves.
double saved_by_fusing(const Facts& facts, double planned, double consumers) {
  const double summed = facts.maybe("plan.handover_summed").value_or(0);
  const double gone = std::max(0.0, 1 - (prepared(facts) + kNeedsAll * summed) / planned);
  return consumers >= kLongChain ? kNeighbours * gone : gone;
}

// Bytes that pass between kernels through device memory, and through L2.
struct Passed {
  double far = 0, near = 0;
};

Passed passed_on(const Facts& facts, double planned, double largest, double most) {
  Passed passed;
  passed.near = facts.maybe("plan.handover_in_l2").value_or(largest < kKeptInL2 ? planned : 0);
  passed.far = std::min(planned - passed.near, beyond_compulsory(facts));
  const double part = std::min(1.0, most / (passed.far + passed.near));
  return {part * passed.far, part * passed.near};
}

std::string through_l2(const Passed& passed) {
  if (passed.near <= 0) return "";
  return passed.far <= 0 ? " (through L2)" : " (" + human_bytes(passed.near) + " of it through L2)";
}

std::optional<Finding> of_plan(const Facts& facts) {
  const double planned = facts.maybe("plan.handover_bytes").value_or(0);
  const double consumers = facts.maybe("plan.consumers").value_or(0);
  const double largest = facts.maybe("plan.handover_largest").value_or(planned);
  const Passed passed = passed_on(facts, planned, largest, stored(facts) * (1 + consumers));
  const double bytes = passed.far + passed.near;
  const auto time_us = facts.maybe("timing.median");
  const auto bandwidth = facts.maybe("ceiling.copy_bandwidth");
  if (bytes <= 0 || consumers < 1 || !time_us || !bandwidth || *bandwidth <= 0) {
    return std::nullopt;
  }
  const double saved_us = 1e6 * (passed.far + passed.near / kL2Speed) / *bandwidth;
  const double compulsory_us = 1e6 * facts.maybe("task.compulsory_bytes").value_or(0) / *bandwidth;
  const double traffic_us = saved_us + compulsory_us;
  if (traffic_us > kPlausible * *time_us) return std::nullopt;
  const double starts_us = kStartUs * consumers;
  // At memory speed, the time saved is proportional to the bytes saved.
  const bool memory_bound = traffic_us >= kMemoryBound * *time_us;
  const double by_bytes = traffic_us > 0 ? saved_us / traffic_us : 0;
  const double by_time = (saved_us + starts_us) / *time_us;
  const double share = std::min(0.95, memory_bound ? std::max(by_bytes, by_time) : by_time);
  if (share < kLeastShare) return std::nullopt;

  Finding finding;
  finding.severity = share >= 0.4 ? Severity::kCritical : Severity::kWarning;
  finding.metrics = {"plan.handover_bytes", "plan.consumers", "plan.kernels", "timing.median",
                     "ceiling.copy_bandwidth"};
  finding.cause =
      number(consumers) + " of the call's " + number(facts.maybe("plan.kernels").value_or(0)) +
      " kernels " + (consumers == 1 ? "reads" : "read") +
      " back what an earlier one wrote: " + human_bytes(bytes) + " that only pass between kernels" +
      through_l2(passed) + ", about " + percent(share) + " of " + human_us(*time_us) + ".";
  finding.prescriptions = advice();
  const double output = facts.maybe("task.output_bytes").value_or(0);
  if (facts.maybe("task.half_inputs").value_or(0) > 0 && output > 0 && largest >= kWider * output &&
      bytes >= kWhole * planned) {
    finding.cause += " The largest of them takes " + number(largest / output, 2) +
                     " times the bytes of the output: it is kept in a wider type than the tensors.";
    finding.metrics.emplace_back("task.output_bytes");
    finding.prescriptions.push_back({"precision",
                                     "If it must go through memory, store it in the tensors' own "
                                     "type and convert on load and store.",
                                     "rounding the intermediate would cost too much precision"});
  }
  const double saved = saved_by_fusing(facts, planned, consumers);
  if (const double operands = std::min(bytes, prepared(facts)); operands > 0) {
    finding.cause += " Of them " + human_bytes(operands) +
                     " are operands that are prepared once for the kernel that multiplies them.";
  }
  finding.likely_speedup = speedup_without(saved * share);
  finding.upper_speedup =
      speedup_without(std::min(0.95, std::max(1.3 * share, std::max(by_bytes, by_time))));
  return finding;
}

std::optional<Finding> of_trace(const Facts& facts, double span) {
  const double count = facts.maybe("trace.pointwise").value_or(0);
  const double time_us = facts.maybe("trace.pointwise_us").value_or(0);
  if (count < 2 || span <= 0) return std::nullopt;
  const double fusable = time_us / span * (1 - 1 / count);
  if (fusable < kLeastTraced) return std::nullopt;
  Finding finding;
  finding.severity = fusable >= 0.4 ? Severity::kCritical : Severity::kWarning;
  finding.metrics = {"trace.pointwise", "trace.pointwise_us", "trace.span"};
  finding.cause = number(count) + " pointwise and reduction kernels take " +
                  percent(std::min(1.0, time_us / span)) + " of " + human_us(span) +
                  ", each of them a separate pass over memory.";
  finding.prescriptions = advice();
  finding.prescriptions.insert(finding.prescriptions.begin() + 1,
                               {"fusion", "Let torch.compile fuse them, and fuse the rest by hand.",
                                "the module is to become a custom kernel"});
  finding.likely_speedup = speedup_without(kFusable * fusable);
  finding.upper_speedup =
      speedup_without(std::min(0.95, fusable + facts.maybe("trace.gaps").value_or(0) / span));
  return finding;
}

// Whether its code handles elements one by one, each where it lies, and memory sets its pace.
bool passes_over_elements(const Evidence& kernel) {
  const auto fact = [&](const char* name) { return kernel.get(name).value_or(0); };
  const double accesses = fact("sass.hot.global_loads") + fact("sass.hot.global_stores");
  for (const char* name : {"sass.hot.barriers", "sass.hot.shared_loads", "sass.hot.shared_atomics",
                           "sass.hot.global_atomics", "sass.hot.shuffles"}) {
    if (kernel.get(name).value_or(1) > 0) return false;
  }
  return fact("sass.hot.global_loads") > 0 && fact("sass.hot.global_stores") > 0 &&
         fact("sass.hot.global_unit_stride") + fact("sass.hot.global_uniform") >= accesses &&
         fact("gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed") >= 100 * kMemoryPaced;
}

// Kernels that make passes over the same elements.
struct Passes {
  std::vector<const KernelEvidence*> kernels;
  double us = 0, bytes = 0;
};

// Kernels whose code shows that each is a pass over the same elements: what a program has allocated
// is all that one pass could move. Where no plan tells what they hand over.
std::optional<Finding> of_passes(const Facts& facts, double span) {
  const auto allocated = facts.maybe("trace.allocated_bytes");
  if (!allocated || *allocated <= 0) return std::nullopt;
  // Those with as many threads belong together. A kernel that is launched again and again needs,
  // each time, what it made before.
  std::map<double, Passes> by_threads;
  for (const KernelEvidence& kernel : facts.kernels()) {
    const auto moved = device_bytes(kernel.facts);
    const auto grid = kernel.facts.get("launch__grid_size");
    const auto block = kernel.facts.get("launch__block_size");
    if (!moved || !grid || !block || !passes_over_elements(kernel.facts)) continue;
    if (kernel.facts.get("kernel.launches").value_or(1) > 1) continue;
    Passes& group = by_threads[*grid * *block];
    group.kernels.push_back(&kernel);
    group.us += kernel.facts.get("gpu__time_duration.sum").value_or(0) * 1e-3;
    group.bytes += *moved;
  }
  const auto longest =
      std::ranges::max_element(by_threads, {}, [](const auto& each) { return each.second.us; });
  if (longest == by_threads.end()) return std::nullopt;
  const Passes& passes = longest->second;
  const double count = static_cast<double>(passes.kernels.size());
  const double us = passes.us, bytes = passes.bytes;
  if (count < 2 || span <= 0 || bytes <= 0) return std::nullopt;
  const double least = std::max(*allocated * kInAndOut, bytes / count);
  const double share = std::min(1.0, us / span) * std::max(0.0, 1 - least / bytes);
  if (share < kLeastTraced) return std::nullopt;
  Finding finding;
  finding.severity = share >= 0.4 ? Severity::kCritical : Severity::kWarning;
  finding.metrics = {"trace.span", "trace.allocated_bytes", "dram__bytes_read.sum",
                     "dram__bytes_write.sum"};
  std::string names;
  for (const KernelEvidence* kernel : passes.kernels) {
    names += (names.empty() ? "" : ", ") + one_line(kernel->name.substr(0, kernel->name.find('(')));
    if (finding.sites.size() < kMostNamed) {
      finding.sites = joined({finding.sites, launches_of(*kernel)});
    }
  }
  finding.cause = number(count) + " kernels (" + names +
                  ") each make a pass over the same elements: together they move " +
                  human_bytes(bytes) + ", where the program has allocated " +
                  human_bytes(*allocated) + ".";
  finding.prescriptions = advice();
  finding.likely_speedup = speedup_without(kFusedPasses * share);
  finding.upper_speedup = speedup_without(
      std::min(0.95, std::min(1.0, us / span) * std::max(0.0, 1 - *allocated / bytes)));
  return finding;
}

// What a PyTorch module's operators pass to each other and a fused kernel would keep on chip.
class Chains {
 public:
  Chains(std::span<const OperatorCall> calls, double bandwidth)
      : calls_(calls), gone_(calls.size()), chain_(calls.size()) {
    std::vector<int> readers(calls.size()), fused(calls.size());
    std::iota(chain_.begin(), chain_.end(), std::size_t{0});
    for (std::size_t i = 0; i < calls.size(); ++i) {
      for (const OperatorCall::Input& input : calls[i].from) {
        const auto from = static_cast<std::size_t>(input.from);
        ++readers[from];
        if (!fusable(calls[from].kind, calls[i].kind)) continue;
        ++fused[from];
        gone_[i] += input.bytes;
        join(from, i);
      }
    }
    for (std::size_t i = 0; i < calls.size(); ++i) {
      if (readers[i] > 0 && readers[i] == fused[i]) gone_[i] += calls[i].written_bytes;
      bytes_ += gone_[i];
      const double us = saved_us(calls[i], gone_[i], bandwidth);
      saved_us_ += us;
      of_chain_[root(i)] += us;
    }
  }

  double bytes() const { return bytes_; }
  double saved_us() const { return saved_us_; }
  // The operators of the chain that saves most, in order.
  std::vector<std::size_t> longest() const {
    const auto most =
        std::max_element(of_chain_.begin(), of_chain_.end(),
                         [](const auto& a, const auto& b) { return a.second < b.second; });
    std::vector<std::size_t> members;
    for (std::size_t i = 0; most != of_chain_.end() && i < calls_.size(); ++i) {
      if (root(i) == most->first) members.push_back(i);
    }
    return members;
  }

 private:
  // An epilogue, or a prologue that recomputes nothing; a reduction keeps its row on chip.
  static bool fusable(OperatorKind from, OperatorKind to) {
    if (from == OperatorKind::kOther || to == OperatorKind::kOther) return false;
    if (to == OperatorKind::kPointwise || to == OperatorKind::kCopy) return true;
    return from == OperatorKind::kPointwise || from == OperatorKind::kCopy;
  }
  // The time of an operator that only moves bytes goes with them.
  static double saved_us(const OperatorCall& call, double gone, double bandwidth) {
    const double bytes = call.read_bytes + call.written_bytes;
    if (gone <= 0 || bytes <= 0) return 0;
    if (call.kind == OperatorKind::kProduct) {
      return std::min(0.5 * call.us, 1e6 * gone / bandwidth);
    }
    return call.us * std::min(1.0, gone / bytes);
  }
  std::size_t root(std::size_t i) const {
    while (chain_[i] != i) i = chain_[i];
    return i;
  }
  void join(std::size_t a, std::size_t b) { chain_[root(b)] = root(a); }

  std::span<const OperatorCall> calls_;
  std::vector<double> gone_;  // bytes that each one need not move
  std::vector<std::size_t> chain_;
  std::map<std::size_t, double> of_chain_;
  double bytes_ = 0, saved_us_ = 0;
};

std::optional<Finding> of_operators(const Facts& facts) {
  const auto calls = facts.operators();
  const auto time_us = facts.maybe("timing.median");
  const auto bandwidth = facts.maybe("ceiling.copy_bandwidth");
  if (!time_us || *time_us <= 0 || !bandwidth || *bandwidth <= 0) return std::nullopt;
  const Chains chains(calls, *bandwidth);
  const double share = std::min(0.95, chains.saved_us() / *time_us);
  const std::vector<std::size_t> longest = chains.longest();
  if (share < kLeastShare || longest.size() < 2) return std::nullopt;
  std::string names;
  for (std::size_t i = 0; i < std::min(longest.size(), kMostNamed); ++i) {
    const OperatorCall& call = calls[longest[i]];
    names += (i == 0 ? "" : " -> ") + operator_words(call.name, call.where);
  }
  if (longest.size() > kMostNamed) {
    names += " -> " + std::to_string(longest.size() - kMostNamed) + " more";
  }
  Finding finding;
  finding.severity = share >= 0.4 ? Severity::kCritical : Severity::kWarning;
  finding.metrics = {"timing.median", "ceiling.copy_bandwidth"};
  finding.cause =
      "Operators that could run in one kernel each make their own pass over memory: " + names +
      ". Of all operators' traffic " + human_bytes(chains.bytes()) +
      " only passes between such neighbours, about " + percent(share) + " of " +
      human_us(*time_us) + ".";
  finding.prescriptions = advice();
  finding.likely_speedup = speedup_without(kFusable * share);
  finding.upper_speedup = speedup_without(std::min(0.95, 1.3 * share));
  return finding;
}

std::optional<Finding> unfused_kernels(const Facts& facts) {
  if (!facts.operators().empty()) return of_operators(facts);
  if (facts.maybe("plan.handover_bytes")) return of_plan(facts);
  const auto span = facts.maybe("trace.span");
  if (!span) return std::nullopt;
  const auto traced = of_trace(facts, *span);
  return traced ? traced : of_passes(facts, *span);
}

constexpr const char* kUnfusedKernelsOneOf[] = {"plan.handover_bytes", "plan.kernels",
                                                "trace.span"};

}  // namespace

extern const Tool kUnfusedKernels;
const Tool kUnfusedKernels{
    .name = "unfused-kernels",
    .summary = "Kernels pass results through memory that a fused kernel would keep on chip.",
    .target = ToolTarget::kCuda,
    .analyse = unfused_kernels,
    .scope = Scope::kCall,
    .one_of = kUnfusedKernelsOneOf};

}  // namespace kernelpro
