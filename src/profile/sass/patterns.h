// SPDX-License-Identifier: Apache-2.0
// What a loop's body could do with fewer or other instructions. Pure.
#pragma once

#include <vector>

#include "profile/sass/dataflow.h"
#include "profile/sass/lanes.h"

namespace kernelpro {

// Places of accesses narrower than 128 bit with a neighbour at the next address in the same
// iteration (same base, same condition), and how many accesses merging would leave of them. Where
// the distance between lanes is known, merged accesses are no wider than its alignment allows, and
// neighbours that the next lane reads as its own (a stencil) do not count. Nor do those that a step
// of the loop would move off their alignment.
struct Mergeable {
  std::vector<int> places;
  int merged = 0;
};
// `op`: kGlobalLoad, kGlobalStore or kSharedLoad. `lanes`: by place.
Mergeable mergeable(const Dataflow& body, Op op, const std::vector<LaneAccess>& lanes);

// Those of the mergeable's kind that leave gaps between lanes which neighbours in the same
// iteration fill: an array of structures that is read whole.
std::vector<int> filled_gaps(const Dataflow& body, Op op, const std::vector<LaneAccess>& lanes);

// Loads of `op` from an address that no iteration changes; registers that the loop's inner loops
// write (`all_of_loop`: instructions of the function, inner loops included) count as changing.
// None of shared memory where the loop also writes there.
std::vector<int> invariant_loads(const Dataflow& body, Op op, const std::vector<int>& all_of_loop);

// Integer instructions that serve only addresses and conditions.
std::vector<int> address_arithmetic(const Dataflow& body);

// Global loads whose value goes to shared memory and nowhere else.
std::vector<int> staged_copies(const Dataflow& body);

// Multiplies whose only reader is an add.
std::vector<int> fusable_multiplies(const Dataflow& body);

// Integer divisions and remainders by a value known at run time: where each estimates its quotient.
std::vector<int> inline_divisions(const Dataflow& body);

// Values of half precision made fp32: by an instruction for it, or by moving bf16 into the upper
// half where the result is used as fp32; and the way back.
std::vector<int> half_conversions(const Dataflow& body);

// fp16 or bf16 arithmetic on one element; conversions between half and single precision, and those
// of them to half precision that convert one value.
bool is_half_math(const SassInstruction& i);
bool is_scalar_half(const SassInstruction& i);
bool is_half_conversion(const SassInstruction& i);
bool is_scalar_half_conversion(const SassInstruction& i);

}  // namespace kernelpro
