// SPDX-License-Identifier: Apache-2.0
#include "report/comparison.h"

#include <gtest/gtest.h>

#include "base/text.h"

namespace kernelpro {
namespace {

KernelEvidence kernel(const std::string& name, double registers, double loads) {
  KernelEvidence kernel;
  kernel.name = name;
  kernel.facts.set("launch__registers_per_thread", registers, "ptxas");
  kernel.facts.set("sass.global_loads", loads, "nvdisasm");
  return kernel;
}

ComparedSide side(const std::string& name, double us, std::vector<KernelEvidence> kernels) {
  ComparedSide side;
  side.name = name;
  if (us > 0) side.evidence.set("timing.median", us, "timing");
  side.evidence.kernels = std::move(kernels);
  return side;
}

Correct::Versus versus(double ratio, double low, double high) {
  return {"someone", ratio, low, high};
}

TEST(SideBySide, ShowsWhatDiffersAndCountsTheRest) {
  const SideBySide compared =
      compare(side("old.cu", 120, {kernel("sum", 40, 8)}),
              side("new.cu", 100, {kernel("sum", 64, 8)}), versus(1.2, 1.18, 1.22));
  ASSERT_EQ(compared.kernels.size(), 2u);
  const ComparedKernel& sum = compared.kernels[1];
  ASSERT_EQ(sum.differing.size(), 1u);
  EXPECT_EQ(sum.differing[0].name, "launch__registers_per_thread");
  EXPECT_EQ(sum.differing[0].before, 40);
  EXPECT_EQ(sum.differing[0].after, 64);
  EXPECT_EQ(sum.same, 1);
  const std::string text = comparison_text(compared);
  EXPECT_TRUE(contains(text, "**Faster: 1.2x** (1.18 to 1.22; ")) << text;
  EXPECT_TRUE(contains(text, "| 40 | 64 | +60 % |")) << text;
  EXPECT_TRUE(contains(text, "1 other metric is the same")) << text;
}

TEST(SideBySide, AClearLossFallsBelowTheThreshold) {
  const ComparedSide old = side("old.cu", 100, {}), now = side("new.cu", 104, {});
  EXPECT_TRUE(falls_below(compare(old, now, versus(0.96, 0.95, 0.965)), 0.97));
  EXPECT_FALSE(falls_below(compare(old, now, versus(0.96, 0.94, 0.98)), 0.97))
      << "its interval reaches it";
  EXPECT_TRUE(falls_below(compare(old, now, std::nullopt), 0.97)) << "by the times alone";
  ComparedSide broken = now;
  broken.wrong = "wrong result";
  EXPECT_TRUE(falls_below(compare(old, broken, std::nullopt), 0.5));
  EXPECT_TRUE(contains(comparison_text(compare(old, broken, std::nullopt)),
                       "**new.cu does not work**: wrong result"));
}

TEST(SideBySide, KernelsAreMatchedByName) {
  const SideBySide compared =
      compare(side("a", 0, {kernel("first", 32, 1), kernel("second", 32, 1)}),
              side("b", 0, {kernel("second", 40, 1), kernel("third", 9, 1)}), std::nullopt);
  EXPECT_EQ(compared.removed, std::vector<std::string>{"first"});
  EXPECT_EQ(compared.added, std::vector<std::string>{"third"});
  ASSERT_EQ(compared.kernels.size(), 2u);
  EXPECT_EQ(compared.kernels[1].name, "second");
  EXPECT_FALSE(speedup_of(compared)) << "nobody timed them";
  EXPECT_FALSE(falls_below(compared, 0.97));
  // The only kernel of each may have been renamed.
  EXPECT_EQ(compare(side("a", 0, {kernel("one", 32, 1)}), side("b", 0, {kernel("two", 32, 1)}),
                    std::nullopt)
                .kernels[1]
                .name,
            "one -> two");
}

TEST(SideBySide, JsonHasEveryMetric) {
  const Json json = comparison_json(compare(side("a", 10, {kernel("k", 32, 1)}),
                                            side("b", 5, {kernel("k", 16, 2)}), std::nullopt));
  EXPECT_EQ(json["speedup"], 2.0);
  EXPECT_FALSE(json.contains("speedup_low"));
  EXPECT_EQ(json["kernels"][1]["differing"].size(), 2u);
}

TEST(SideBySide, NamesDoNotBreakTheTable) {
  const std::string text =
      comparison_text(compare(side("a|b", 0, {kernel("k<a|b>", 32, 1)}),
                              side("c", 0, {kernel("k<a|b>", 16, 1)}), std::nullopt));
  EXPECT_TRUE(contains(text, "k<a\\|b>")) << text;
}

}  // namespace
}  // namespace kernelpro
