// SPDX-License-Identifier: Apache-2.0
// Patterns in a loop body that fewer or different instructions could replace. Pure.
#pragma once

#include <vector>

#include "profile/sass/dataflow.h"
#include "profile/sass/lanes.h"

namespace kernelpro {

// Accesses narrower than 128 bits with a neighbour at the next address in the same iteration (same
// base, same condition), and how many accesses would remain after merging. If the distance between
// lanes is known, merged accesses are no wider than its alignment allows, and neighbours that the
// next lane also reads (a stencil) do not count. Nor do accesses that a loop step would misalign.
struct Mergeable {
  std::vector<int> places;
  int merged = 0;
};
// `op`: kGlobalLoad, kGlobalStore or kSharedLoad. `lanes`: by place.
Mergeable mergeable(const Dataflow& body, Op op, const std::vector<LaneAccess>& lanes);

// Accesses like the mergeable ones that leave gaps between lanes, filled by neighbours in the same
// iteration: an array of structures that is read whole.
std::vector<int> filled_gaps(const Dataflow& body, Op op, const std::vector<LaneAccess>& lanes);

// Loads of `op` from a loop-invariant address. Registers written in inner loops (`all_of_loop`:
// instructions of the function, inner loops included) count as changing. No shared-memory loads if
// the loop also writes shared memory.
std::vector<int> invariant_loads(const Dataflow& body, Op op, const std::vector<int>& all_of_loop);

// Integer instructions that serve addresses and loop counters, and no data.
std::vector<int> address_arithmetic(const Dataflow& body);

// Global stores to an address from which the same iteration loads: it works in place.
std::vector<int> updates(const Dataflow& body);

// Global loads whose value goes to shared memory and nowhere else.
std::vector<int> staged_copies(const Dataflow& body);

// Multiplies whose only reader is an add, or that begin a sum of products whose only reader is an
// add: in another order each product would meet an addition. One for each such add.
std::vector<int> fusable_multiplies(const Dataflow& body);

// Integer divisions and remainders by a run-time value: the place where each estimates its
// quotient.
std::vector<int> inline_divisions(const Dataflow& body);

// Conversions between half precision and fp32, both ways: by a conversion instruction, or by moving
// bf16 into the upper half of a register that is then used as fp32.
std::vector<int> half_conversions(const Dataflow& body);

// In order: fp16 or bf16 arithmetic; such arithmetic on one element; conversions between half and
// single precision; conversions of one value to half precision.
bool is_half_math(const SassInstruction& i);
bool is_scalar_half(const SassInstruction& i);
bool is_half_conversion(const SassInstruction& i);
bool is_scalar_half_conversion(const SassInstruction& i);

}  // namespace kernelpro
