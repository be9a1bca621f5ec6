// SPDX-License-Identifier: Apache-2.0
#include "profile/code/parallel_regions.h"

#include <algorithm>
#include <string_view>

#include "base/text.h"

namespace kernelpro {

namespace {

constexpr std::string_view kStarters[] = {"<GOMP_parallel", "<__kmpc_fork_call", "_M_start_thread",
                                          "<pthread_create"};

bool starts_threads(const AsmInstruction& instruction) {
  const std::string_view name = instruction.mnemonic;
  if (!name.starts_with("call") && !name.starts_with("jmp")) return false;
  return std::any_of(std::begin(kStarters), std::end(kStarters), [&](std::string_view starter) {
    return contains(instruction.operands, starter);
  });
}

}  // namespace

int parallel_regions(const std::vector<AsmFunction>& functions) {
  int count = 0;
  for (const AsmFunction& function : functions) {
    count +=
        static_cast<int>(std::count_if(function.code.begin(), function.code.end(), starts_threads));
  }
  return count;
}

}  // namespace kernelpro
