// SPDX-License-Identifier: Apache-2.0
// Metrics that count instructions: one row each.
#pragma once

#include <span>

#include "profile/sass/program.h"

namespace kernelpro {

struct SassCount {
  const char* name;
  bool (*counts)(const SassInstruction& i);
};

std::span<const SassCount> kernel_counts();  // sass.*, over the whole kernel
std::span<const SassCount> hot_counts();     // sass.hot.*, over the hot loops

}  // namespace kernelpro
