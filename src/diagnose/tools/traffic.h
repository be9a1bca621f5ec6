// SPDX-License-Identifier: Apache-2.0
// A kernel's memory traffic as the tools about memory read it from counters, SASS and theory: how
// full its sectors are, how often it moves what it must move once, how much is in flight. All pure;
// what was not observed is nullopt. A sector is 32 bytes, the unit in which L1, L2 and device
// memory move data.
#pragma once

#include <optional>
#include <string>

#include "diagnose/tools/tool.h"

namespace kernelpro {

inline constexpr double kSectorBytes = 32;

// Global loads, or global stores, of all warps.
struct Accesses {
  double requests = 0;  // warp instructions
  double sectors = 0;   // that L1 looked up for them
  // Sectors if the lanes lay side by side: 4 for 32-bit accesses of a full warp, 8 for 64-bit ones,
  // 16 for 128-bit ones (CUDA C++ Programming Guide, device memory accesses). The widths are those
  // of the hot loops; never more than `sectors`.
  double ideal = 0;

  double per_request() const { return requests > 0 ? sectors / requests : 0; }
  double ideal_per_request() const { return requests > 0 ? ideal / requests : 0; }
  // How many times the sectors of side-by-side accesses; 1 = none wasted.
  double excess() const { return ideal > 0 ? sectors / ideal : 1; }
};

std::optional<Accesses> global_loads(const Facts& facts);
std::optional<Accesses> global_stores(const Facts& facts);
// The larger excess of the two; 1 when not counted, or when chunked().
double worst_excess(const Facts& facts);
// Each thread takes a few neighbouring elements, at most 16 B, one at a time: lanes leave gaps, but
// the thread's other accesses fill them. One wide access is the remedy, not another order.
bool chunked(const Facts& facts);

// Part of the waits that are for global or local memory (long_scoreboard, lg_throttle, drain), 0 to
// 1; `otherwise` when stalls were not counted.
double memory_wait(const Facts& facts, double otherwise);
// The sum of several reasons, likewise.
double stalls(const Facts& facts, std::initializer_list<std::string_view> reasons,
              double otherwise);

// Bytes between L1 and L2 by reads, atomics left out: what missed L1.
std::optional<double> l2_read_bytes(const Facts& facts);
// Of the wavefronts in the data pipe of L1, the part that shared memory takes, 0 to 1.
double shared_part(const Facts& facts);
// Of the sectors that L1 looks up for global and local memory, the part of local memory.
std::optional<double> local_part(const Facts& facts);

// What must be moved once, when the kernel does all of the call's work (its only kernel, or nearly
// all of its time); nullopt: not known.
struct Compulsory {
  double bytes = 0;
  double reads = 0;
  double writes = 0;  // 0 and `reads` = `bytes` when the outputs' part is not known
  bool split = false;
};
std::optional<Compulsory> compulsory(const Facts& facts);
// Bytes that device memory moved for the kernel.
struct Dram {
  double reads = 0;
  double writes = 0;
  double bytes() const { return reads + writes; }
};
std::optional<Dram> dram(const Facts& facts);

// Asked of L2 for its inputs more often than this, a kernel does not go over them in passes: its
// threads share them.
inline constexpr double kManyPasses = 6;
// The hot code may go over one block's input several times: several loops, or nested ones, or
// nothing is known of it.
bool own_passes(const Facts& facts);

// Bytes of loads that a multiprocessor must have under way to reach the copy bandwidth: Little's
// law, bandwidth x latency / multiprocessors. nullopt without a ceiling.
std::optional<double> needed_in_flight(const Facts& facts);
// Bytes that its resident threads have under way at most: warps x 32 x bytes per thread of the hot
// loop's loads before the first wait.
std::optional<double> in_flight(const Facts& facts);
// The hot loop follows addresses: each of its one or two loads takes what the one before brought,
// so that neither more nor wider loads of a warp can be under way.
bool chained(const Facts& facts);
// Warps resident on a multiprocessor: counted, else what the launch allows.
std::optional<double> resident_warps(const Facts& facts);

// Puts the gain into the finding.
void set_gain(const Gain& gain, Finding* finding);
// The gain of a change as `likely` has it, and as an upper bound what the model leaves when the
// mended resources shed twice as much as expected and the rest of the instructions a quarter.
void set_gain(const Facts& facts, const Effect& likely, Finding* finding);
// The text "line of METRIC" of the first metric that has one; "" = none.
std::string line_of(const Facts& facts, std::initializer_list<const char*> metrics);

}  // namespace kernelpro
