// SPDX-License-Identifier: Apache-2.0
#include "diagnose/roofline/model.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "base/error.h"

namespace kernelpro {

namespace {

struct Row {
  std::string_view name;
  double limit;
  const char* metric;  // percent of peak over the elapsed time
};

// Limits that good kernels reached on an H200 (copy: 4.3 of 4.8 TB/s; bf16 matmul: 790 of 989
// TFLOP/s at power-limited clocks); the others are readings of a saturated pipe.
constexpr Row kRows[kResources] = {
    {"device memory", 0.92, "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed"},
    {"L2", 0.85, "lts__t_sectors.avg.pct_of_peak_sustained_elapsed"},
    {"L1 and shared memory", 0.92,
     "l1tex__data_pipe_lsu_wavefronts.avg.pct_of_peak_sustained_elapsed"},
    {"L2 atomics", 0.9, "lts__d_atomic_input_cycles_active.avg.pct_of_peak_sustained_elapsed"},
    {"the load-store unit", 0.92, "sm__inst_executed_pipe_lsu.avg.pct_of_peak_sustained_elapsed"},
    {"instruction issue", 0.92, nullptr},
    {"fp32 multiply-adds", 0.95, "sm__pipe_fma_cycles_active.avg.pct_of_peak_sustained_elapsed"},
    {"integer and logic", 0.95, "sm__pipe_alu_cycles_active.avg.pct_of_peak_sustained_elapsed"},
    {"special functions", 0.95, "sm__inst_executed_pipe_xu.avg.pct_of_peak_sustained_elapsed"},
    {"fp64", 0.95, "sm__pipe_fp64_cycles_active.avg.pct_of_peak_sustained_elapsed"},
    {"matrix units", 0.85, "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed"},
};

constexpr double kOverlap = 3;  // the exponent of the soft maximum

std::size_t index(Resource resource) { return static_cast<std::size_t>(resource); }

double soft(double work, double waiting) {
  return std::pow(std::pow(work, kOverlap) + std::pow(waiting, kOverlap), 1 / kOverlap);
}

// Issue slot utilization over the elapsed time; the counter is per active cycle.
std::optional<double> issue_busy(const Evidence& facts) {
  const auto ipc = facts.get("smsp__issue_active.avg.per_cycle_active");
  const auto active = facts.get("sm__cycles_active.avg");
  const auto elapsed = facts.get("gpc__cycles_elapsed.max");
  if (!ipc) return std::nullopt;
  if (!active || !elapsed || *elapsed <= 0) return *ipc;
  return *ipc * std::min(1.0, *active / *elapsed);
}

}  // namespace

std::string stall_metric(Stall reason) {
  return "smsp__average_warps_issue_stalled_" + std::string(stall_row(reason).name) +
         "_per_issue_active.ratio";
}

std::string_view resource_name(Resource resource) { return kRows[index(resource)].name; }
double resource_limit(Resource resource) { return kRows[index(resource)].limit; }

KernelModel::KernelModel(const Evidence& evidence, const KernelEvidence* kernel,
                         const Roofline& roofline)
    : facts_(kernel != nullptr ? &kernel->facts : &evidence), theory_(roofline.fraction) {
  for (int i = 0; i < kResources; ++i) {
    auto& busy = busy_[static_cast<std::size_t>(i)];
    if (kRows[i].metric == nullptr) {
      busy = issue_busy(*facts_);
    } else if (const auto percent = facts_->get(kRows[i].metric)) {
      busy = *percent / 100;
    }
    if (busy) *busy = std::clamp(*busy, 0.0, 1.0);
    counted_ = counted_ || busy.has_value();
  }
  const auto active = facts_->get("sm__cycles_active.avg");
  const auto elapsed = facts_->get("gpc__cycles_elapsed.max");
  if (active && elapsed && *elapsed > 0) idle_ = std::clamp(1 - *active / *elapsed, 0.0, 1.0);
}

std::optional<double> KernelModel::busy(Resource resource) const { return busy_[index(resource)]; }

double KernelModel::demand(Resource resource) const {
  const auto& busy = busy_[index(resource)];
  return busy ? std::min(1.0, *busy / resource_limit(resource)) : 0;
}

Resource KernelModel::busiest() const {
  int best = 0;
  for (int i = 1; i < kResources; ++i) {
    if (demand(static_cast<Resource>(i)) > demand(static_cast<Resource>(best))) best = i;
  }
  return static_cast<Resource>(best);
}

double KernelModel::demand() const {
  return counted_ ? demand(busiest()) : std::clamp(theory_, 0.0, 1.0);
}

double KernelModel::waiting() const {
  return std::pow(std::max(0.0, 1 - std::pow(demand(), kOverlap)), 1 / kOverlap);
}

std::optional<double> KernelModel::stall(Stall reason) const {
  const auto cycles = facts_->get(stall_metric(reason));
  const auto all = facts_->get("smsp__average_warp_latency_per_inst_issued.ratio");
  if (!cycles || !all) return std::nullopt;
  // The counters take most waits for matrix products for those at barriers; samples lie at the
  // instruction that waits, and tell the two apart.
  const auto& places = facts_->places;
  const bool either = reason == Stall::kBarrier || reason == Stall::kGmma;
  if (either && places && places->basis == Places::Basis::kSampled) {
    double waits = 0, share = 0;
    for (const StallShare& each : places->stalls) {
      if (stall_row(each.stall).cause != StallCause::kNone) waits += each.share;
      if (each.stall == reason) share += each.share;
    }
    if (waits > 0) return std::clamp(share / waits, 0.0, 1.0);
  }
  // Being ready is not a stall.
  const double ready = facts_->get(stall_metric(Stall::kNotSelected)).value_or(0) +
                       facts_->get(stall_metric(Stall::kSelected)).value_or(1);
  const double waits = *all - ready;
  return waits > 0 ? std::clamp(*cycles / waits, 0.0, 1.0) : 0;
}

Bound KernelModel::bound() const {
  if (!counted_) return Bound::kUnknown;
  double memory = 0, compute = 0;
  for (const Resource r : {Resource::kDram, Resource::kL2, Resource::kL1, Resource::kAtomics}) {
    memory = std::max(memory, demand(r));
  }
  for (const Resource r : {Resource::kIssue, Resource::kLsu, Resource::kFma, Resource::kAlu,
                           Resource::kXu, Resource::kFp64, Resource::kTensor}) {
    compute = std::max(compute, demand(r));
  }
  if (std::max(memory, compute) < 0.6) return Bound::kLatency;
  if (std::abs(memory - compute) < 0.1) return Bound::kMixed;
  return memory > compute ? Bound::kMemory : Bound::kCompute;
}

Gain KernelModel::gain(const Effect& effect) const {
  double work = 0;
  if (counted_) {
    for (int i = 0; i < kResources; ++i) {
      const auto r = static_cast<Resource>(i);
      work = std::max(work, demand(r) * std::max(0.0, effect.work[index(r)]));
    }
  } else {
    work = demand();
  }
  // Time without a block on a multiprocessor stretches everything else.
  const double stretch = 1 - idle_ * (1 - std::clamp(effect.idle, 0.0, 1.0));
  const double likely = stretch * soft(work, waiting() * std::max(0.0, effect.waiting));
  const double least = stretch * work;
  Gain gain;
  gain.likely = likely > 0 ? std::max(1.0, 1 / likely) : 1;
  gain.upper = std::max(gain.likely, least > 0 ? 1 / least : gain.likely);
  return gain;
}

}  // namespace kernelpro
