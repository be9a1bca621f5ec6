// SPDX-License-Identifier: Apache-2.0
#include "report/diff.h"

#include <gtest/gtest.h>

#include <string>

namespace kernelpro {
namespace {

TEST(Diff, ShowsChangesWithContext) {
  std::string before, after;
  for (int i = 0; i < 40; ++i) {
    before += "line " + std::to_string(i) + "\n";
    after += i == 20 ? "changed\nadded\n" : "line " + std::to_string(i) + "\n";
  }
  const auto diff = line_diff(before, after);
  int added = 0, removed = 0, skipped = 0;
  for (const DiffLine& line : diff) {
    added += line.kind == DiffLine::Kind::kAdded ? 1 : 0;
    removed += line.kind == DiffLine::Kind::kRemoved ? 1 : 0;
    skipped += line.kind == DiffLine::Kind::kSkipped ? 1 : 0;
  }
  EXPECT_EQ(added, 2);
  EXPECT_EQ(removed, 1);
  EXPECT_EQ(skipped, 2);
  EXPECT_EQ(diff.size(), 2u + 1 + 6 + 2);
  EXPECT_TRUE(line_diff(before, before).empty());
}

}  // namespace
}  // namespace kernelpro
