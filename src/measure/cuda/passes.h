// SPDX-License-Identifier: Apache-2.0
// Which input set each timed call gets. A pass is one command to a worker: every timed call in it
// has its own set, whose memory is mapped at the same addresses. Pure.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace kernelpro {

// 0 to count - 1, shuffled by a secret seed.
std::vector<int> secret_order(int count, std::uint64_t seed);

struct PassStep {
  bool candidate = true;
  int set = 0;
  bool timed = true;
  bool probe = false;  // of the candidate: it is called as if timed, but its time does not count
};

// Pass number `pass` over `sets` sets. With an incumbent, the candidate is timed on half of the
// sets and the incumbent on the other half, and the next pass swaps them (passes 2q and 2q + 1 are
// such a couple), so that neither finds the other's results where it is judged. `warm_up`: one
// untimed call of each first, on set `spare`, which is none of these; where there is no such set
// (-1), on one on which the candidate is not timed in this pass. `seed` decides order and halves,
// and is secret. At most `at_most` sets for each arm.
std::vector<PassStep> plan_pass(int sets, int spare, bool incumbent, bool warm_up, int at_most,
                                std::uint64_t pass, std::uint64_t seed);

// Puts `probes` sets with other contents in the place of as many timed calls of the candidate, at
// random ones of those. At most as many as there are.
void place_probes(const std::vector<int>& probes, std::uint64_t seed, std::vector<PassStep>* steps);
// How many calls of the candidate a pass times.
std::size_t timed_calls(const std::vector<PassStep>& steps);

// The incumbent's time over the candidate's in a couple of passes: for each place k, the geometric
// mean over both passes, in which the two arms had the same sets in turn. Places with a probe are
// left out. `times`: of the steps; untimed ones are ignored.
std::vector<double> couple_ratios(const std::vector<PassStep>& first,
                                  const std::vector<double>& first_us,
                                  const std::vector<PassStep>& second,
                                  const std::vector<double>& second_us);

}  // namespace kernelpro
