// SPDX-License-Identifier: Apache-2.0
// A line diff of two texts. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kernelpro {

struct DiffLine {
  enum class Kind { kSame, kAdded, kRemoved, kSkipped } kind = Kind::kSame;
  int before = 0;  // 1-based line numbers; 0 = none
  int after = 0;
  std::string text;  // kSkipped: "12 lines"
};

// Longest common subsequence. A changed middle that is too large for that (more than 4 million
// pairs of lines) becomes one removal and one addition. Unchanged runs longer than twice `context`
// are skipped. Empty when the texts are equal.
std::vector<DiffLine> line_diff(std::string_view before, std::string_view after, int context = 3);

}  // namespace kernelpro
