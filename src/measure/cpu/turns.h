// SPDX-License-Identifier: Apache-2.0
// The timed turns of the cpu target: how many calls one has, and what its time says. Decisions
// only: times come from the caller, in nanoseconds. Pure.
#pragma once

#include <vector>

namespace kernelpro {

// What a call in a turn takes besides itself at least: its order, and stopping the process.
constexpr double kAroundCallNs = 5e4;

struct MeasuredTurn {
  double wall_ns = 0;        // of its calls, each from its order to its answer
  double cpu_ns = 0;         // of all its threads
  double foreign = 0;        // share of the machine that others used, 0..1
  double waited_ns = 0;      // its threads for a processor, summed
  double others_cpu_ns = 0;  // of all threads but the one that makes the calls; infinite: unknown
  int calls = 1;             // orders
};

// The share of the machine that others used during several turns, 0..1. By their lengths: a turn of
// microseconds ends before it can see what goes on beside it.
class ForeignShare {
 public:
  void add(const MeasuredTurn& turn) {
    foreign_ns_ += turn.foreign * turn.wall_ns;
    all_ns_ += turn.wall_ns;
  }
  double mean() const { return all_ns_ > 0 ? foreign_ns_ / all_ns_ : 0; }

 private:
  double foreign_ns_ = 0, all_ns_ = 0;
};

// What an order costs the worker without a kernel.
struct OrderCost {
  double wall_ns = 0;
  double cpu_ns = 0;  // of its one thread
};

// The typical one of several: most are undisturbed, some were lucky. REQUIRES: at least one.
double typical_order(std::vector<double> orders_ns);

// A turn's time without the cost of its orders. Most of that is waking up, and a kernel may save
// it: it spins for its order, or its helpers work while an order or an answer is on its way. So
// what other threads used of the processor is not subtracted; and what the first one used, less
// what an order takes of it, is the least that counts.
double own_ns(const MeasuredTurn& taken, const OrderCost& order);

// Several, each on its own set and by its own order, where calls are short: so that chance evens
// out. Times are without the cost of an order. `incumbent_ns`: 0 without one. `around_ns`: what a
// call takes besides itself, with its inputs and the comparison. `most`: as many as there are sets;
// >= 1.
int calls_per_turn(double candidate_ns, double incumbent_ns, double around_ns, int most);

// Whether turns of `calls` must be replaced by turns of `wanted`. A side that seems slow, asleep
// perhaps, when it is sized up gets short turns, in which chance weighs more.
bool much_too_short(int calls, int wanted);

// What a turn would have taken at least on a machine without other work. It waited for nobody
// longer than its threads waited for a processor, nor longer than others used one; and it needs its
// own processor time.
double least_ns(const MeasuredTurn& taken, int threads);

}  // namespace kernelpro
