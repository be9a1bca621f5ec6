// SPDX-License-Identifier: Apache-2.0
// Where in the source a kernel issues its instructions, in pieces that a writer can act on. A long
// loop issues one or two per cent at each of its lines; a function that it calls, or a few lines
// beside each other, are more. Pure; any code is safe.
#pragma once

#include <vector>

#include "core/evidence/places.h"
#include "profile/places/control_flow.h"
#include "profile/sass/program.h"

namespace kernelpro {

// `issued`: of each instruction, in any unit. Regions from kLeastRegion on, the largest first, at
// most kMostRegions; without the lines' texts. Empty where the code has no lines.
std::vector<IssueRegion> issue_regions(const SassFunction& function, const ControlFlow& control,
                                       const std::vector<double>& issued);

}  // namespace kernelpro
