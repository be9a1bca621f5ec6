// SPDX-License-Identifier: Apache-2.0
// Estimates the gain of a change to a kernel: a bottleneck model over its hardware counters.
//
// The kernel takes time T = 1. Each resource r is busy for a fraction b(r) of it, at most limit(r),
// which good kernels reach. Its demand is b(r) / limit(r); D is the largest demand. Time that
// resources do not explain is waiting, W, with D^3 + W^3 = 1: large work and large waiting mostly
// overlap, and a sum would count them twice (a soft maximum, as in Stratton et al., "Algorithm and
// data optimization techniques", 2012, and in queueing near saturation). A change scales the work
// of resources and the waiting; the likely time is (D'^3 + W'^3)^(1/3), the minimum D' alone (all
// waiting hidden). Pure.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "core/evidence/evidence.h"
#include "core/finding/finding.h"
#include "diagnose/roofline/roofline.h"

namespace kernelpro {

enum class Resource {
  kDram,     // device memory
  kL2,       // sector look-ups
  kL1,       // the data pipe of L1 and shared memory
  kAtomics,  // L2's atomic units
  kLsu,      // instructions of the load-store unit
  kIssue,    // the schedulers
  kFma,
  kAlu,
  kXu,
  kFp64,
  kTensor,
};
inline constexpr int kResources = 11;
std::string_view resource_name(Resource resource);  // "device memory"
// The highest utilization of a resource that good kernels reach, 0 to 1.
double resource_limit(Resource resource);

// The fraction of the kernel's work and waiting that remains after a change; above 1: more work.
struct Effect {
  Effect() { work.fill(1); }
  Effect& scale(Resource resource, double factor) {
    work[static_cast<std::size_t>(resource)] *= factor;
    return *this;
  }
  std::array<double, kResources> work;
  double waiting = 1;  // fewer or shorter waits, or more warps and loads in flight
  double idle = 1;     // of the time when multiprocessors have no block
};

struct Gain {
  double likely = 1;  // kernel speedup
  double upper = 1;
};

// The counter of a stall reason: cycles per issued instruction.
std::string stall_metric(Stall reason);

class KernelModel {
 public:
  // Uses the kernel's items if there is a kernel, else the call's. `roofline` replaces missing
  // counters: without any, the demand is the theoretical floor's.
  KernelModel(const Evidence& evidence, const KernelEvidence* kernel, const Roofline& roofline);

  bool counted() const { return counted_; }             // based on hardware counters
  std::optional<double> busy(Resource resource) const;  // 0 to 1 of the kernel's time
  double demand(Resource resource) const;               // busy over its limit; 0 = unknown
  double demand() const;                                // the largest
  Resource busiest() const;                             // the resource with the largest demand
  double waiting() const;                               // W
  // Fraction of the time when multiprocessors have no resident block; 0 = unknown.
  double idle() const { return idle_; }
  // Fraction of a warp's stalled cycles (those when it was not ready) due to `reason`; nullopt when
  // not counted. Barriers and matrix products are told apart by samples where there are any.
  std::optional<double> stall(Stall reason) const;
  // Measured class: memory, compute, latency or mixed; kUnknown without counters. Applies the
  // 80/60/10 rule of Nsight Compute's SpeedOfLight section to demands.
  Bound bound() const;

  Gain gain(const Effect& effect) const;

 private:
  std::array<std::optional<double>, kResources> busy_;
  const Evidence* facts_;  // of the kernel, or of the call
  double theory_ = 0;      // floor over time, without counters
  double idle_ = 0;
  bool counted_ = false;
};

}  // namespace kernelpro
