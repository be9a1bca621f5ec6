// SPDX-License-Identifier: Apache-2.0
// How long one warp takes per loop iteration, and why: dependent chains, waits, loads in flight.
// Uses the typical latencies of opcodes.h. Pure.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "profile/sass/dataflow.h"

namespace kernelpro {

struct Chain {
  double issue_cycles = 0;  // minimum for one warp to issue the body: the sum of stall counts
  double alone_cycles = 0;  // with waits: one iteration of a warp alone on its scheduler
  double chain_cycles = 0;  // the longest dependent chain within one iteration
  int chain_length = 0;
  // Growth of the longest chain per iteration; 0 without a loop.
  double carried_cycles = 0;
  std::vector<int> carried;  // places of one turn of that chain, in chain order
};
Chain chain_of(const Dataflow& body);

struct Flight {
  int loads = 0;          // most global loads in flight at once
  int bytes = 0;          // of those loads, per thread
  double use_cycles = 0;  // median of the work between a load and its first use; 0 = no load
  int async_groups = 0;   // async-copy groups that a wait may leave in flight
};
Flight loads_in_flight(const Dataflow& body);

// One place of the body that waits for an earlier one.
struct Wait {
  int place = 0;
  int producer = 0;
};
std::vector<Wait> waits_of(const Dataflow& body);

}  // namespace kernelpro
