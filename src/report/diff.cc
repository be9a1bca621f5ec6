// SPDX-License-Identifier: Apache-2.0
#include "report/diff.h"

#include <algorithm>

#include "base/text.h"

namespace kernelpro {

namespace {

using Lines = std::vector<std::string>;
using Kind = DiffLine::Kind;

struct Range {
  std::size_t low_a, high_a, low_b, high_b;
};

void remove_add(const Lines& a, const Lines& b, const Range& r, std::vector<DiffLine>* out) {
  for (std::size_t i = r.low_a; i < r.high_a; ++i) {
    out->push_back({Kind::kRemoved, static_cast<int>(i) + 1, 0, a[i]});
  }
  for (std::size_t j = r.low_b; j < r.high_b; ++j) {
    out->push_back({Kind::kAdded, 0, static_cast<int>(j) + 1, b[j]});
  }
}

// The classic LCS length table, walked from the front.
void middle(const Lines& a, const Lines& b, const Range& r, std::vector<DiffLine>* out) {
  const std::size_t n = r.high_a - r.low_a;
  const std::size_t m = r.high_b - r.low_b;
  if (n * m > 4'000'000) return remove_add(a, b, r, out);
  std::vector<int> table((n + 1) * (m + 1), 0);
  const auto at = [&](std::size_t i, std::size_t j) -> int& { return table[i * (m + 1) + j]; };
  for (std::size_t i = n; i-- > 0;) {
    for (std::size_t j = m; j-- > 0;) {
      at(i, j) = a[r.low_a + i] == b[r.low_b + j] ? at(i + 1, j + 1) + 1
                                                  : std::max(at(i + 1, j), at(i, j + 1));
    }
  }
  std::size_t i = 0;
  std::size_t j = 0;
  while (i < n || j < m) {
    const int line_a = static_cast<int>(r.low_a + i) + 1;
    const int line_b = static_cast<int>(r.low_b + j) + 1;
    if (i < n && j < m && a[r.low_a + i] == b[r.low_b + j]) {
      out->push_back({Kind::kSame, line_a, line_b, a[r.low_a + i]});
      ++i, ++j;
    } else if (j == m || (i < n && at(i + 1, j) >= at(i, j + 1))) {
      out->push_back({Kind::kRemoved, line_a, 0, a[r.low_a + i]});
      ++i;
    } else {
      out->push_back({Kind::kAdded, 0, line_b, b[r.low_b + j]});
      ++j;
    }
  }
}

std::vector<DiffLine> fold(const std::vector<DiffLine>& all, int context) {
  std::vector<bool> keep(all.size(), false);
  const int size = static_cast<int>(all.size());
  for (int i = 0; i < size; ++i) {
    if (all[static_cast<std::size_t>(i)].kind == Kind::kSame) continue;
    for (int k = std::max(0, i - context); k <= std::min(size - 1, i + context); ++k) {
      keep[static_cast<std::size_t>(k)] = true;
    }
  }
  std::vector<DiffLine> result;
  for (std::size_t i = 0; i < all.size();) {
    if (keep[i]) {
      result.push_back(all[i++]);
      continue;
    }
    std::size_t end = i;
    while (end < all.size() && !keep[end]) ++end;
    result.push_back({Kind::kSkipped, 0, 0, std::to_string(end - i) + " unchanged lines"});
    i = end;
  }
  return result;
}

}  // namespace

std::vector<DiffLine> line_diff(std::string_view before, std::string_view after, int context) {
  if (before == after) return {};
  const Lines a = lines(before);
  const Lines b = lines(after);
  Range r{0, a.size(), 0, b.size()};
  while (r.low_a < r.high_a && r.low_b < r.high_b && a[r.low_a] == b[r.low_b]) ++r.low_a, ++r.low_b;
  while (r.high_a > r.low_a && r.high_b > r.low_b && a[r.high_a - 1] == b[r.high_b - 1]) {
    --r.high_a, --r.high_b;
  }
  std::vector<DiffLine> all;
  for (std::size_t i = 0; i < r.low_a; ++i) {
    all.push_back({Kind::kSame, static_cast<int>(i) + 1, static_cast<int>(i) + 1, a[i]});
  }
  middle(a, b, r, &all);
  for (std::size_t i = r.high_a, j = r.high_b; i < a.size(); ++i, ++j) {
    all.push_back({Kind::kSame, static_cast<int>(i) + 1, static_cast<int>(j) + 1, a[i]});
  }
  return fold(all, context);
}

}  // namespace kernelpro
