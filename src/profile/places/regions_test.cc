// SPDX-License-Identifier: Apache-2.0
#include "profile/places/regions.h"

#include <gtest/gtest.h>

#include "profile/places/testing/synthetic.h"

namespace kernelpro {
namespace {

// A function of one instruction after another, with its source lines.
struct Coded {
  SassFunction f;
  ControlFlow control;
  std::vector<double> issued;

  Coded() { f.files = {"kernel.cu"}; }

  // `calls`: lines, the innermost first.
  void add(int line, const std::vector<int>& calls, double weight, Op op = Op::kFp32) {
    SassInstruction i;
    i.op = op;
    i.file = 0;
    i.line = line;
    if (!calls.empty()) {
      i.calls = static_cast<int>(f.calls.size());
      auto& chain = f.calls.emplace_back();
      for (const int call : calls) chain.emplace_back(0, call);
    }
    f.code.push_back(i);
    control.called_from.push_back(-1);
    issued.push_back(weight);
  }
  std::vector<IssueRegion> regions() const { return issue_regions(f, control, issued); }
};

TEST(Regions, AFunctionOfManyLinesIsToldByItsCall) {
  Coded code;
  for (int line = 10; line < 50; line += 5) code.add(line, {100}, 5);
  for (int line = 60; line < 90; line += 5) code.add(line, {120}, 5, Op::kSpecial);
  for (int line = 200; line < 260; line += 10) code.add(line, {}, 5);
  const auto regions = code.regions();
  ASSERT_EQ(regions.size(), kMostRegions);
  EXPECT_EQ(regions[0].first, 100);
  EXPECT_NEAR(regions[0].share, 0.4, 1e-9);
  EXPECT_EQ(regions[0].kind, WorkKind::kFp32);
  EXPECT_EQ(regions[1].first, 120);
  EXPECT_NEAR(regions[1].share, 0.3, 1e-9);
  EXPECT_EQ(regions[1].kind, WorkKind::kSpecial);
}

TEST(Regions, ACallThatIsMostOfItIsToldByWhatIsWithinIt) {
  Coded code;
  code.add(20, {300, 400}, 50);  // a function called at 300, in one called at 400
  code.add(310, {400}, 20);
  for (int line = 320; line < 332; ++line) code.add(line, {400}, 2.5);
  const auto regions = code.regions();
  ASSERT_EQ(regions.size(), 3u);
  EXPECT_EQ(regions[0].line.line, 20) << "half of all: the line itself";
  EXPECT_EQ(regions[1].first, 320);
  EXPECT_EQ(regions[1].last, 331) << "lines beside each other are one";
  EXPECT_NEAR(regions[1].share, 0.3, 1e-9);
  EXPECT_EQ(regions[2].first, 310);
}

TEST(Regions, AddUpToAtMostAllAndDoNotOverlap) {
  int with_lines = 0;
  for (const char* file : {"hopper.nvdisasm.txt", "patterns.sm_90a.txt", "sm_90a.nvdisasm.txt"}) {
    for (const auto& [name, f] : recorded_kernels(KERNELPRO_SOURCE_DIR, file)) {
      ControlFlow control;
      control.called_from.assign(f.code.size(), -1);
      const auto regions = issue_regions(f, control, std::vector<double>(f.code.size(), 1.0));
      with_lines += regions.empty() ? 0 : 1;
      double all = 0;
      for (const IssueRegion& region : regions) {
        EXPECT_LE(region.first, region.line.line) << name;
        EXPECT_LE(region.line.line, region.last) << name;
        EXPECT_GE(region.share, kLeastRegion);
        all += region.share;
        for (const IssueRegion& other : regions) {
          const bool apart = &other == &region || other.line.file != region.line.file ||
                             other.last < region.first || other.first > region.last;
          EXPECT_TRUE(apart) << name << ": " << region.first << " and " << other.first;
        }
      }
      EXPECT_LE(all, 1 + 1e-9) << name;
    }
  }
  EXPECT_GT(with_lines, 10);
}

TEST(Regions, NothingIsSaidWithoutLines) {
  Coded code;
  code.add(1, {}, 1);
  code.f.code[0].file = -1;
  EXPECT_TRUE(code.regions().empty());
  EXPECT_TRUE(Coded().regions().empty());
}

}  // namespace
}  // namespace kernelpro
