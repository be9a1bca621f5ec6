// SPDX-License-Identifier: Apache-2.0
// A kernel's memory traffic for the memory tools, from counters, SASS and theory: how full its
// sectors are, how often it moves compulsory bytes, how much is in flight. All pure; nullopt means
// not observed. A sector is 32 bytes, the unit in which L1, L2 and device memory move data.
#pragma once

#include <optional>
#include <string>

#include "diagnose/tools/tool.h"

namespace kernelpro {

inline constexpr double kSectorBytes = 32;

// Global loads (or global stores) of all warps.
struct Accesses {
  double requests = 0;  // warp instructions
  double sectors = 0;   // looked up by L1
  // Sectors with fully coalesced lanes: 4 for 32-bit accesses of a full warp, 8 for 64-bit, 16 for
  // 128-bit (CUDA C++ Programming Guide, device memory accesses). Widths are those of the hot
  // loops; never more than `sectors`.
  double ideal = 0;

  double per_request() const { return requests > 0 ? sectors / requests : 0; }
  double ideal_per_request() const { return requests > 0 ? ideal / requests : 0; }
  // Sectors over those of coalesced accesses; 1 = none wasted.
  double excess() const { return ideal > 0 ? sectors / ideal : 1; }
};

std::optional<Accesses> global_loads(const Facts& facts);
std::optional<Accesses> global_stores(const Facts& facts);
// The larger excess of the two; 1 when not counted, or when chunked().
double worst_excess(const Facts& facts);
// Each thread accesses a few adjacent elements, at most 16 B, one at a time: lanes leave gaps, but
// the thread's other accesses fill them. The remedy is one wide access, not another order.
bool chunked(const Facts& facts);

// Most of the hot loops' global accesses have addresses without a pattern among lanes: they follow
// from data.
bool scattered(const Facts& facts);

// Fraction of stalls on global or local memory (long_scoreboard, lg_throttle, drain), 0 to 1;
// `otherwise` when stalls were not counted.
double memory_wait(const Facts& facts, double otherwise);
// The same for the sum of several reasons.
double stalls(const Facts& facts, std::initializer_list<Stall> reasons, double otherwise);

// Bytes read from L2 into L1 (L1 misses), without atomics.
std::optional<double> l2_read_bytes(const Facts& facts);
// Shared memory's fraction of the wavefronts in L1's data pipe, 0 to 1.
double shared_part(const Facts& facts);
// Local memory's fraction of the sectors that L1 looks up for global and local memory.
std::optional<double> local_part(const Facts& facts);

// Bytes that must be moved once, if the kernel does all of the call's work (its only kernel, or
// nearly all of its time); nullopt: unknown.
struct Compulsory {
  double bytes = 0;
  double reads = 0;
  double writes = 0;  // 0, with `reads` = `bytes`, when the outputs' share is unknown
  bool split = false;
};
std::optional<Compulsory> compulsory(const Facts& facts);
// The same; without a task, at most what the program has allocated: the kernel's stores, and reads
// of all the rest, once a launch. More than needed, so that what exceeds it is certain.
std::optional<Compulsory> compulsory_at_most(const Facts& facts);
// Device-memory traffic of the kernel, in bytes.
struct Dram {
  double reads = 0;
  double writes = 0;
  double bytes() const { return reads + writes; }
};
std::optional<Dram> dram(const Facts& facts);

// A kernel that requests its inputs from L2 more often than this does not make passes over them:
// its threads share them.
inline constexpr double kManyPasses = 6;
// Whether the hot code may make several passes over one block's input: it has several or nested
// loops, or is unknown.
bool own_passes(const Facts& facts);

// Bytes of loads that a multiprocessor must have in flight to reach the copy bandwidth: Little's
// law, bandwidth x latency / multiprocessors. nullopt without a ceiling.
std::optional<double> needed_in_flight(const Facts& facts);
// The most bytes that its resident threads have in flight: warps x 32 x bytes per thread of the hot
// loop's loads before the first wait.
std::optional<double> in_flight(const Facts& facts);
// Whether the hot loop chases pointers: the address of each of its one or two loads comes from the
// previous load, so that a warp cannot have more or wider loads in flight.
bool chained(const Facts& facts);
// Resident warps per multiprocessor: counted, else what the launch allows.
std::optional<double> resident_warps(const Facts& facts);

// Stores the gain in the finding.
void set_gain(const Gain& gain, Finding* finding);
// Stores the gain of the effect `likely`; the upper gain is the model's when the improved resources
// shed twice as much as expected and the remaining instructions a quarter.
void set_gain(const Facts& facts, const Effect& likely, Finding* finding);

}  // namespace kernelpro
