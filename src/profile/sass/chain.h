// SPDX-License-Identifier: Apache-2.0
// How long a loop's iteration takes one warp, and for what: dependent chains, waits, loads under
// way. Latencies are the typical ones of sass_opcodes.h. Pure.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "profile/sass/dataflow.h"

namespace kernelpro {

struct Chain {
  double issue_cycles = 0;  // the least in which one warp issues the body: the stall counts' sum
  double alone_cycles = 0;  // with waits: one iteration of a warp that has the scheduler to itself
  double chain_cycles = 0;  // the longest dependent chain within one iteration
  int chain_length = 0;
  // By how much longer the longest chain gets with each iteration; 0 when nothing loops.
  double carried_cycles = 0;
  std::vector<int> carried;  // places of one turn of that chain, in its order
};
Chain chain_of(const Dataflow& body);

struct Flight {
  int loads = 0;          // global loads under way before the first of them is waited for, at most
  int bytes = 0;          // theirs, per thread
  double use_cycles = 0;  // own work between a load and what waits for it, the median; 0 = no load
  int async_groups = 0;   // groups of asynchronous copies that may be under way past a wait
};
Flight loads_in_flight(const Dataflow& body);

// One place of the body that waits for one earlier one.
struct Wait {
  int place = 0;
  int producer = 0;
};
std::vector<Wait> waits_of(const Dataflow& body);

}  // namespace kernelpro
