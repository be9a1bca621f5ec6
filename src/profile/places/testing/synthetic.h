// SPDX-License-Identifier: Apache-2.0
// For tests: recorded disassembly, and samples made up for single instructions of it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/files.h"
#include "core/evidence/samples.h"
#include "profile/sass/sass.h"

namespace kernelpro {

// `root`: KERNELPRO_SOURCE_DIR.
inline std::map<std::string, SassFunction> recorded_kernels(const std::string& root,
                                                            const std::string& file) {
  std::map<std::string, SassFunction> kernels;
  const Result<std::string> text = read_file(root + "/src/profile/fixtures/" + file);
  if (!text) return kernels;
  for (SassFunction& function : parse_sass(*text)) {
    const std::string name = function.name;
    if (!function.code.empty()) kernels[name] = std::move(function);
  }
  return kernels;
}

// Adds samples at an instruction, of which `exposed` are exposed.
inline void add_samples(const SassFunction& kernel, int instruction, Stall stall, double all,
                        double exposed, KernelSamples* samples) {
  const SassInstruction& i = kernel.code[static_cast<std::size_t>(instruction)];
  samples->pcs.push_back(
      {static_cast<int>(i.address - kernel.code[0].address), {{stall, all, exposed}}});
}

// Every instruction stalls for every reason that it may have, by a fixed pattern.
inline KernelSamples samples_everywhere(const SassFunction& kernel) {
  KernelSamples samples;
  samples.function = kernel.name;
  for (int k = 0; k < static_cast<int>(kernel.code.size()); ++k) {
    const SassControl& control = kernel.code[static_cast<std::size_t>(k)].control;
    for (int s = 0; s < kStalls; ++s) {
      const auto stall = static_cast<Stall>(s);
      const bool board = stall == Stall::kLongScoreboard || stall == Stall::kShortScoreboard;
      if (board && control.known && control.waits == 0) continue;
      const int all = (k * 7 + s * 5) % 11;
      add_samples(kernel, k, stall, all, all * (k % 3) / 2.0, &samples);
    }
  }
  return samples;
}

}  // namespace kernelpro
