// SPDX-License-Identifier: Apache-2.0
// The timed turns of the cpu target: how many calls one has, and what its time says. Decisions
// only: times come from the caller, in nanoseconds. Pure.
#pragma once

namespace kernelpro {

struct MeasuredTurn {
  double wall_ns = 0;
  double cpu_ns = 0;     // of all its threads
  double foreign = 0;    // share of the machine that others used, 0..1
  double waited_ns = 0;  // its threads for a processor, summed
};

// Times of calls are without the cost of an order.

// Several, each on its own set, where calls are short. `incumbent_ns`: 0 without one. `most`: as
// many as there are sets; >= 1.
int calls_per_turn(double candidate_ns, double incumbent_ns, int most);

// Whether turns of `calls` must be replaced by turns of `wanted`. A side that seems slow, asleep
// perhaps, when it is sized up gets short turns, in which the cost of an order hides its work.
bool much_too_short(int calls, int wanted);

// Whether calls are so much faster together than one is alone that they must be timed one by one:
// a kernel may find all inputs of a turn in memory and compute several sets side by side. Threads
// that must be woken for a call alone are allowed for.
bool only_fast_together(double alone_ns, double together_ns);

// What a turn would have taken at least on a machine without other work. It waited for nobody
// longer than its threads waited for a processor, nor longer than others used one; and it needs its
// own processor time.
double least_ns(const MeasuredTurn& taken, int threads);

}  // namespace kernelpro
