// SPDX-License-Identifier: Apache-2.0
// What a change to a kernel would gain: a bottleneck model over the kernel's hardware counters.
//
// The kernel takes time T = 1. Each resource r is busy for a part b(r) of it, and could be for at
// most limit(r), what good kernels reach. Its demand is b(r) / limit(r); D is the largest demand.
// What resources do not explain is waiting, W, with D^3 + W^3 = 1: where work and waiting are both
// large they overlap for the most part, and a sum would count them twice (a soft maximum, as in
// Stratton et al., "Algorithm and data optimization techniques", 2012, and in queueing near
// saturation). A change scales the work of resources and the waiting; the likely time is
// (D'^3 + W'^3)^(1/3), the least one D' alone (all waiting hidden). Pure.
#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "core/evidence.h"
#include "core/finding.h"
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
// What a good kernel keeps busy of a resource at most, 0 to 1.
double resource_limit(Resource resource);

// What a change leaves of the kernel's work and waiting; 1 = all of it. More work is above 1.
struct Effect {
  Effect() { work.fill(1); }
  Effect& scale(Resource resource, double factor) {
    work[static_cast<std::size_t>(resource)] *= factor;
    return *this;
  }
  std::array<double, kResources> work;
  double waiting = 1;  // fewer or shorter waits, or more warps and loads in flight
  double idle = 1;     // of the time in which multiprocessors have no block
};

struct Gain {
  double likely = 1;  // speed-up of the kernel
  double upper = 1;
};

class KernelModel {
 public:
  // Of the kernel if there is one, else of the call's items. `roofline` stands in for counters
  // that are missing: without any, the demand is what theory asks for.
  KernelModel(const Evidence& evidence, const KernelEvidence* kernel, const Roofline& roofline);

  bool counted() const { return counted_; }             // rests on hardware counters
  std::optional<double> busy(Resource resource) const;  // 0 to 1 of the kernel's time
  double demand(Resource resource) const;               // busy over its limit; 0 = unknown
  double demand() const;                                // the largest
  Resource busiest() const;                             // whose that is
  double waiting() const;                               // W
  // Part of the time that multiprocessors have no block resident; 0 = unknown.
  double idle() const { return idle_; }
  // A warp's cycles between instructions that it spends on `reason` ("long_scoreboard"), of all
  // but those in which it was ready; nullopt when not counted.
  std::optional<double> stall(std::string_view reason) const;
  // Measured class: memory, compute, latency or mixed; kUnknown without counters. 80/60/10 rule of
  // Nsight Compute's SpeedOfLight section, on demands.
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
