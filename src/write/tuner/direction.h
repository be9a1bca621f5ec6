// SPDX-License-Identifier: Apache-2.0
// Which way a prescription moves a number: "a larger tile" is not answered by a smaller one. Pure.
#pragma once

#include <string_view>
#include <vector>

#include "core/candidate/knobs.h"
#include "core/finding/finding.h"

namespace kernelpro {

enum class Direction { kEither, kUp, kDown };

// From the first word of its text that says so; tags whose number only ever grows (vectorize,
// pipeline, threads) move up without one.
Direction direction_of(const Prescription& prescription);

// Whether the step from one value of a knob to another follows it. Values that are not numbers
// follow every direction.
bool follows(Direction direction, const Knob& knob, int from, int to);

}  // namespace kernelpro
