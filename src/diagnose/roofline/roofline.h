// SPDX-License-Identifier: Apache-2.0
// Stage one of the diagnosis: the task's theoretical limit, and how close the candidate comes.
//
// The floors are those of core/evidence/rates.h:
// memory floor  = task.compulsory_bytes / ceiling.copy_bandwidth
// compute floor = (flops - matmul) / ceiling.fma_rate + matmul / (the rate that matrix products may
//                 use: ceiling.tensor_rate when every input is half precision, else fma_rate, or
//                 that of products in parts where the candidate has matrix instructions)
// A call shorter than the compute floor needs less arithmetic than the definition counts (Winograd,
// Strassen, an identity): that floor is then dropped, and only the memory floor binds.
// Roofline model: Williams, Waterman, Patterson, CACM 52(4), 2009. Ceilings are measured.
#pragma once

#include "core/evidence/evidence.h"
#include "core/finding/finding.h"

namespace kernelpro {

struct Roofline {
  Bound theory = Bound::kUnknown;  // kMemory, kCompute, or kMixed when the floors are close
  Bound bound = Bound::kUnknown;   // as theory, or kLaunch / kLatency if the timing shows it
  double memory_floor_us = 0;
  double compute_floor_us = 0;
  double floor_us = 0;
  double time_us = 0;
  double fraction = 0;  // floor over time; 0 = unknown
  // As fraction, on an otherwise idle machine: assumes the worst case, that the call was longer by
  // the full share of the processors that others used. Prevents conclusions that the load alone
  // explains.
  double quiet_fraction = 0;
  double foreign = 0;      // share of the processors that other processes used while timing
  bool less_work = false;  // does less work than the definition: compute_floor_us does not bind

  bool known() const { return fraction > 0; }
  // Possible speedup at the measured ceilings: time over floor, at least 1.
  double headroom() const { return fraction > 0 && fraction < 1 ? 1 / fraction : 1; }
  // How far the call beats the measured ceilings: the larger floor over its time, binding or not.
  // Above kBeatsCeiling, doubt the ceilings or the task's declared work. 0: unknown.
  double beats() const;
  // Largest possible speedup: as headroom(), with kCopySlack on the copy bandwidth.
  double most() const;
};

// How far a kernel's traffic may exceed the copy bandwidth without help from a cache: a copy writes
// as much as it reads, and read-write turnarounds of the memory bus cost time; a kernel that mostly
// reads has fewer of them.
inline constexpr double kCopySlack = 1.1;

// Below this fraction of the compute floor, a time can no longer be an error in a measured ceiling.
inline constexpr double kLessWork = 0.97;

// The larger floor must exceed the other by this factor to be the only bound.
inline constexpr double kMixedRatio = 1.25;
// Below this fraction neither ceiling explains the time.
inline constexpr double kLatencyFraction = 0.25;
// A call of three or more kernels that average less than this is launch-bound.
inline constexpr double kShortKernelUs = 10;

Roofline roofline(const Evidence& evidence);

}  // namespace kernelpro
