// SPDX-License-Identifier: Apache-2.0
// Lines that cause what another line waits for, by slices over machine code: where addresses of hot
// accesses are computed, where the condition of a divergent branch comes from, where the number of
// the block becomes work. Pure; any code is safe.
#pragma once

#include <map>
#include <string>

#include "core/evidence/places.h"
#include "profile/sass/program.h"

namespace kernelpro {

// Under "slice.global", "slice.shared", "slice.branch" and "slice.block"; what is not there has no
// entry.
std::map<std::string, CodeLines> cause_lines(const SassFunction& kernel);

}  // namespace kernelpro
