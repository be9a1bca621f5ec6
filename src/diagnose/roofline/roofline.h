// SPDX-License-Identifier: Apache-2.0
// Stage one of the diagnosis: what limits this task in theory, and how close the candidate is.
//
// memory floor  = task.compulsory_bytes / ceiling.copy_bandwidth
// compute floor = (flops - matmul) / ceiling.fma_rate + matmul / (the rate that matrix products may
//                 use: ceiling.tensor_rate when every input is half precision, else fma_rate)
// A call that is shorter than the compute floor gets by with less arithmetic than the definition
// counts (Winograd, Strassen, an identity): that floor is then none, and the other one holds alone.
// The roofline model: Williams, Waterman, Patterson, CACM 52(4), 2009. Ceilings are measured ones.
#pragma once

#include "core/evidence.h"
#include "core/finding.h"

namespace kernelpro {

struct Roofline {
  Bound theory = Bound::kUnknown;  // kMemory, kCompute, or kMixed when the floors are close
  Bound bound = Bound::kUnknown;   // theory, or kLaunch / kLatency when the timing says so
  double memory_floor_us = 0;
  double compute_floor_us = 0;
  double floor_us = 0;
  double time_us = 0;
  double fraction = 0;  // floor over time; 0 = unknown
  // As fraction, had nothing else run: at worst, others' share of the processors made the call that
  // much longer. No conclusion that the load alone explains is drawn.
  double quiet_fraction = 0;
  double foreign = 0;      // share of the processors that others used while timing
  bool less_work = false;  // than the definition counts: compute_floor_us does not bind

  bool known() const { return fraction > 0; }
  // What is to be won at the measured ceilings: time over floor, at least 1.
  double headroom() const { return fraction > 0 && fraction < 1 ? 1 / fraction : 1; }
  // How far the call beats the measured ceilings: the larger floor over its time, whether it binds
  // or not. Above kBeatsCeiling the ceilings are in doubt, or the task's declared work. 0: unknown.
  double beats() const;
  // The most that can be won: as headroom(), with the copy bandwidth exceeded by kCopySlack.
  double most() const;
};

// How far a kernel's traffic may exceed the copy bandwidth without a cache's help: a copy writes as
// much as it reads, and turning the memory bus around costs; a kernel that mostly reads turns less.
inline constexpr double kCopySlack = 1.1;

// How far below the compute floor a time is no error of a measured ceiling any more.
inline constexpr double kLessWork = 0.97;

// The larger floor must exceed the other by this factor to be the only bound.
inline constexpr double kMixedRatio = 1.25;
// Below this fraction neither ceiling explains the time.
inline constexpr double kLatencyFraction = 0.25;
// Kernels shorter than this, three or more in a call, are bound by their launches.
inline constexpr double kShortKernelUs = 10;

Roofline roofline(const Evidence& evidence);

}  // namespace kernelpro
