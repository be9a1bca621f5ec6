// SPDX-License-Identifier: Apache-2.0
// Shapes of integers, masks, constants and floating tensors that hold whole numbers.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <set>

#include "measure/judge/probe_shapes.h"
#include "measure/judge/testing.h"

namespace kernelpro {
namespace {

using testing::Drawn;
using testing::kDrawnElements;

TEST(ProbeShapes, IntegersComeInRuns) {
  const Drawn drawn(DType::kInt32, {Init::Kind::kIntegers, 0, 1000000});
  const std::vector<double> given = drawn.values(drawn.before);
  for (std::uint64_t key = 0; key < 20; ++key) {
    const std::vector<double> after = drawn.shaped(DrawKind::kRuns, key);
    std::int64_t equal = 0, most = 0;
    for (std::size_t i = 1; i < after.size(); ++i) {
      equal = after[i] == after[i - 1] ? equal + 1 : 0;
      most = std::max(most, equal + 1);
      EXPECT_TRUE(after[i] >= 0 && after[i] <= 1000000);
    }
    EXPECT_GE(most, kDrawnElements / 32) << key;
  }
}

// Not by luck: of a few runs each draw has some of a value that is at neither end.
TEST(ProbeShapes, FewIntegersComeInRunsToo) {
  kp::ShapeSpec spec{};
  spec.shape = kp::kRuns;
  spec.range = 1000000;
  spec.count = 24;
  for (std::uint64_t key = 0; key < 500; ++key) {
    std::map<long long, int> often;
    for (unsigned i = 0; i < 24; ++i)
      ++often[kp::reshaped_integer(spec, kp::mix64(key), i, -1 - i)];
    EXPECT_TRUE(std::ranges::any_of(often, [](const auto& each) {
      return each.second >= 2 && each.first > 0 && each.first < 1000000;
    })) << key;
    EXPECT_GE(often[1000000], 1) << key;
  }
}

TEST(ProbeShapes, IntegersReachTheEndsOfTheDeclaredRange) {
  const Drawn drawn(DType::kInt32, {Init::Kind::kIntegers, -3, 40000});
  const std::vector<double> ends = drawn.shaped(DrawKind::kEnds, 9);
  for (const double end : {-3.0, 40000.0}) {
    const auto count = std::count(ends.begin(), ends.end(), end);
    EXPECT_NEAR(static_cast<double>(count), kDrawnElements / 4.0, kDrawnElements / 20.0);
  }
  std::set<double> equal;
  std::set<std::size_t> kinds;
  for (std::uint64_t key = 0; key < 20; ++key) {
    const std::vector<double> all = drawn.shaped(DrawKind::kEqual, key);
    equal.insert(all.begin(), all.end());
    const std::vector<double> ramp = drawn.shaped(DrawKind::kRamp, key);
    EXPECT_TRUE(std::is_sorted(ramp.begin(), ramp.end()));
    kinds.insert(std::set<double>(ramp.begin(), ramp.end()).size());
    EXPECT_EQ(ramp[0], -3);
    EXPECT_LE(ramp.back(), 40000);
  }
  EXPECT_EQ(equal, (std::set<double>{-3, 40000}));
  EXPECT_EQ(kinds.count(kDrawnElements), 1u) << "all different";
}

TEST(ProbeShapes, RisingIntegersOfAModuleStay) {
  Drawn drawn(DType::kInt64, {Init::Kind::kIntegers, 0, 100});
  drawn.task.tensors[0].init = {Init::Kind::kModule, 0, 0};
  const std::vector<double> ends = drawn.shaped(DrawKind::kEnds, 9);
  EXPECT_GT(std::count(ends.begin(), ends.end(), 100), kDrawnElements / 5)
      << "the largest one drawn";
  for (std::int64_t i = 0; i < kDrawnElements; ++i) {
    const std::int64_t offset = i / 3;
    std::memcpy(drawn.before.data() + 8 * i, &offset, 8);
  }
  EXPECT_EQ(drawn.shaped(DrawKind::kEnds, 9), drawn.values(drawn.before));
}

TEST(ProbeShapes, ConstantInputsDiffer) {
  const Drawn ones(DType::kFp32, {Init::Kind::kConstant, 1, 0});
  for (const double v : ones.shaped(DrawKind::kConstants, 2)) EXPECT_NE(v, 1);
  const Drawn mask(DType::kBool, {Init::Kind::kConstant, 1, 0});
  const std::vector<double> flipped = mask.shaped(DrawKind::kConstants, 2);
  EXPECT_NEAR(static_cast<double>(std::count(flipped.begin(), flipped.end(), 0)),
              kDrawnElements / 8.0, kDrawnElements / 64.0);
  const Drawn lengths(DType::kInt64, {Init::Kind::kConstant, 40, 0});
  std::set<double> seen;
  for (const double v : lengths.shaped(DrawKind::kConstants, 2)) seen.insert(v);
  EXPECT_EQ(*seen.begin(), 20) << "an index stays one";
  EXPECT_EQ(*seen.rbegin(), 40);
  Drawn drawn;
  drawn.task.tensors[0].init = {Init::Kind::kModule, 0, 0};
  EXPECT_EQ(drawn.shaped(DrawKind::kConstants, 2), drawn.values(drawn.before));
}

TEST(ProbeShapes, WholeNumbersGetDigits) {
  const Drawn drawn(DType::kFp32, {Init::Kind::kIntegers, 0, 9});
  const std::vector<double> given = drawn.values(drawn.before);
  const std::vector<double> now = drawn.shaped(DrawKind::kFractions, 6);
  for (std::size_t i = 0; i < now.size(); ++i) {
    ASSERT_EQ(now[i] == given[i], given[i] == 0) << given[i];
    ASSERT_TRUE(now[i] >= 0 && now[i] <= 9 && std::fabs(now[i] - given[i]) <= 0.5);
  }
  for (const Init& init : {Init{Init::Kind::kIntegers, 0, 1}, Init{Init::Kind::kModule, 0, 1}}) {
    Drawn other(DType::kFp32, init);
    EXPECT_EQ(other.shaped(DrawKind::kFractions, 6), other.values(other.before)) << "a mask";
  }
  int digits = 0;
  for (const double v : drawn.shaped(DrawKind::kSparse, 3)) {
    digits += std::fabs(v) > 1e-10 && v * 1024 != std::trunc(v * 1024);
  }
  EXPECT_GT(digits, 20) << "or halves would hold them";
}

}  // namespace
}  // namespace kernelpro
