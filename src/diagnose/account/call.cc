// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "core/evidence/metrics.h"
#include "core/evidence/rates.h"
#include "core/evidence/target.h"
#include "diagnose/account/make_account.h"

namespace kernelpro {

namespace {

constexpr double kCounted = 0.9;  // of the kernels' time

// A kernel with this share of the kernels' time is taken to do all of the call's work.
constexpr double kWholeCall = 0.8;

double or_zero(const Evidence& evidence, const char* name) {
  return std::max(0.0, evidence.get(name).value_or(0));
}

// What the trace saw, scaled to the time of the call when that was measured without it.
void take_trace(const Evidence& evidence, double scale, Spending* call) {
  const auto take = [&](PartKind kind, double us, const char* how) {
    call->take({kind, {}, us * scale, Level::kTiming, how});
  };
  const double busy = or_zero(evidence, "trace.busy");
  const double kernels = or_zero(evidence, "trace.kernels_us");
  take(PartKind::kKernels, kernels, "trace: time with a kernel running");
  take(PartKind::kCopies, busy - kernels, "trace: time with only copies or memsets running");
  take(PartKind::kHost,
       or_zero(evidence, "trace.gaps_sync") + or_zero(evidence, "trace.gaps_allocation"),
       "trace: gaps after a synchronising or allocating call");
  take(PartKind::kLaunch, or_zero(evidence, "trace.gaps_launch"),
       "trace: gaps in which the host was late with the launch");
  take(PartKind::kGaps, or_zero(evidence, "trace.gaps_queue"),
       "trace: gaps although the next thing was in the queue");
}

// Kernels' own time by the profiler; nullopt when it is not known of each.
std::optional<double> kernels_us(const Evidence& evidence) {
  const char* const name = "gpu__time_duration.sum";
  if (evidence.kernels.empty()) {
    const auto ns = evidence.get(name);
    return ns ? std::optional(*ns * 1e-3) : std::nullopt;
  }
  double sum = 0;
  for (const KernelEvidence& kernel : evidence.kernels) {
    const auto ns = kernel.facts.get(name);
    if (!ns) return std::nullopt;
    sum += *ns * 1e-3;
  }
  return sum;
}

void take_plan(const Evidence& evidence, Spending* call) {
  const auto kernels = kernels_us(evidence);
  if (!kernels) {
    call->take({PartKind::kKernels,
                {},
                call->left(),
                Level::kTiming,
                "the call's time: the kernels' own was not measured"});
    return;
  }
  // Kernels that were profiled one by one, with cold caches, may take longer than in the call.
  call->take({PartKind::kKernels, {}, *kernels, Level::kCounters, "gpu__time_duration.sum"});
  if (const auto bandwidth = evidence.get("ceiling.copy_bandwidth"); bandwidth && *bandwidth > 0) {
    const double bytes =
        2 * or_zero(evidence, "plan.memcpy_bytes") + or_zero(evidence, "plan.memset_bytes");
    call->take({PartKind::kCopies,
                {},
                bytes / *bandwidth * 1e6,
                Level::kTiming,
                "bytes of the plan's copies and memsets / copy bandwidth"});
  }
  const double nodes = evidence.get("plan.kernels").value_or(1) +
                       or_zero(evidence, "plan.memcpys") + or_zero(evidence, "plan.memsets");
  call->take({nodes <= 1 ? PartKind::kLaunch : PartKind::kGaps,
              {},
              call->left(),
              Level::kTiming,
              "the call's time less its kernels' and copies'"});
}

KernelFloor whole_floor(const Roofline& roofline) {
  return {roofline.floor_us, roofline.memory_floor_us};
}

// The call's compulsory bytes, divided as the kernels' traffic is; 0 where some was not counted.
double own_memory_floor(const KernelEvidence& kernel, const Evidence& evidence,
                        const Roofline& roofline) {
  const auto bandwidth = evidence.get("ceiling.copy_bandwidth");
  const auto all = device_bytes(evidence.kernels), own = device_bytes(kernel.facts);
  if (!bandwidth || *bandwidth <= 0 || !own || !all || *all <= 0) return 0;
  const double needed = std::min(1.0, roofline.memory_floor_us * 1e-6 * *bandwidth / *all);
  return *own * needed / *bandwidth * 1e6;
}

// The part of the call's arithmetic that the kernel does: of the matrix units' time if they are
// used, else of the multiply-adds'. Nothing where it was not counted of every kernel.
std::optional<double> own_work(const KernelEvidence& kernel, const Evidence& evidence) {
  for (const char* unit : {"sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed",
                           "sm__pipe_fma_cycles_active.avg.pct_of_peak_sustained_elapsed"}) {
    double all = 0, own = 0;
    for (const KernelEvidence& each : evidence.kernels) {
      const auto busy = each.facts.get(unit);
      if (!busy) return std::nullopt;
      const double work = *busy * each.facts.get("kernel.share").value_or(0);
      all += work;
      if (&each == &kernel) own = work;
    }
    if (all > 0) return own / all;
  }
  return std::nullopt;
}

KernelFloor own_floor(const KernelEvidence& kernel, const Evidence& evidence,
                      const Roofline& roofline) {
  const double memory = own_memory_floor(kernel, evidence, roofline);
  if (roofline.theory == Bound::kMemory) return {memory, memory};
  const auto work = own_work(kernel, evidence);
  if (!work) return {};
  return {roofline.floor_us * *work, memory};
}

void add_kernels(const Evidence& evidence, const Roofline& roofline, Account* account) {
  const double kernels = account->part(PartKind::kKernels);
  if (evidence.kernels.empty()) {
    account->kernels.push_back(
        kernel_account("", kernels, evidence, evidence, roofline, whole_floor(roofline)));
    return;
  }
  Spending left(kernels);
  const bool only = evidence.kernels.size() == 1;
  for (const KernelEvidence& kernel : evidence.kernels) {
    const double share =
        std::clamp(kernel.facts.get("kernel.share").value_or(only ? 1 : 0), 0.0, 1.0);
    if (share < kLeastShare || static_cast<int>(account->kernels.size()) >= kMostKernels) continue;
    const double us = left.take({PartKind::kKernels, {}, kernels * share, Level::kTiming, ""});
    account->kernels.push_back(kernel_account(
        only ? "" : kernel.name, us, evidence, kernel.facts, roofline,
        share >= kWholeCall ? whole_floor(roofline) : own_floor(kernel, evidence, roofline)));
    const auto by = kernel.facts.texts.find("operator");
    if (by != kernel.facts.texts.end()) account->kernels.back().launched_by = by->second;
  }
}

// Each operator's time, and what its own tensors and products need. Their kernels may have taken
// longer than in the call, one by one and with cold caches.
void add_operators(const Evidence& evidence, Account* account) {
  double all = 0;
  for (const OperatorCall& each : evidence.operators) all += each.us;
  if (!(all > 0)) return;
  const double call = account->part(PartKind::kKernels) + account->part(PartKind::kCopies);
  const double scale = std::min(1.0, call / all);
  for (const OperatorCall& each : evidence.operators) {
    if (!(each.us > 0)) continue;
    const double us = each.us * scale;
    account->operators.push_back(
        {each.name, each.where, each.kind, us, std::min(us, operator_floor_us(each, evidence))});
  }
  auto& costs = account->operators;
  std::stable_sort(costs.begin(), costs.end(), [](const OperatorCost& a, const OperatorCost& b) {
    return a.us - a.floor_us > b.us - b.floor_us;
  });
  if (costs.size() > kMostOperatorCosts) costs.resize(kMostOperatorCosts);
}

}  // namespace

Spending::Spending(double us)
    : all_(std::isfinite(us) && us > 0 ? std::floor(us / kAccountQuantum) * kAccountQuantum : 0),
      left_(all_) {}

double Spending::take(AccountPart part) {
  if (!(part.us > 0)) return 0;
  part.us = std::floor(std::min(part.us, left_) / kAccountQuantum) * kAccountQuantum;
  if (part.us <= 0) return 0;
  left_ -= part.us;
  parts_.push_back(std::move(part));
  return parts_.back().us;
}

std::vector<AccountPart> Spending::close(std::string why) {
  take({PartKind::kUnknown, {}, left_, Level::kTiming, std::move(why)});
  return std::move(parts_);
}

double operator_floor_us(const OperatorCall& call, const Evidence& evidence) {
  const double bandwidth = evidence.get("ceiling.copy_bandwidth").value_or(0);
  const double rate = matmul_rate(evidence);
  double us = 0;
  if (bandwidth > 0) us = 1e6 * (call.read_bytes + call.written_bytes) / bandwidth;
  if (rate > 0) us = std::max(us, 1e6 * call.flops / rate);
  return us;
}

std::optional<double> device_bytes(const Evidence& facts) {
  const auto reads = facts.get("dram__bytes_read.sum");
  const auto writes = facts.get("dram__bytes_write.sum");
  return reads && writes ? std::optional(*reads + *writes) : std::nullopt;
}

std::optional<double> device_bytes(std::span<const KernelEvidence> kernels) {
  double all = 0, counted = 0;
  for (const KernelEvidence& kernel : kernels) {
    const auto bytes = device_bytes(kernel.facts);
    if (!bytes) continue;
    all += *bytes;
    counted += kernel.facts.get("kernel.share").value_or(0);
  }
  return counted >= kCounted ? std::optional(all) : std::nullopt;
}

Account make_account(const Evidence& evidence, const Roofline& roofline) {
  const double span = or_zero(evidence, "trace.span");
  const double timed = or_zero(evidence, "timing.median");
  Spending call(timed > 0 ? timed : span);
  Account account;
  account.us = call.all();
  if (!account.known()) return account;
  if (evidence_target(evidence) == TargetKind::kCpu) {
    account.parts = processor_parts(account.us, evidence, roofline);
    return account;
  }
  if (span > 0) {
    take_trace(evidence, account.us / span, &call);
  } else {
    take_plan(evidence, &call);
  }
  account.parts = call.close("gaps whose cause was not recorded");
  add_kernels(evidence, roofline, &account);
  add_operators(evidence, &account);
  return account;
}

}  // namespace kernelpro
