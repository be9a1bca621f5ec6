// SPDX-License-Identifier: Apache-2.0
#include "core/task/mismatch.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "base/text.h"
#include "core/task/inputs.h"

namespace kernelpro {
namespace {

struct Fixture {
  explicit Fixture(std::int64_t rows = 8, std::int64_t columns = 16) {
    tensor.name = "y";
    tensor.role = Role::kOutput;
    tensor.tolerance = 1e-3;
    shaped = {&tensor, {rows, columns}, rows * columns, rows * columns * 4};
    std::vector<double> reference;
    for (std::int64_t i = 0; i < shaped.elements; ++i)
      reference.push_back(std::sin(0.1 * static_cast<double>(i)) + 2);
    Rule rule;
    rule.tolerance = 1e-3;
    expected = make_expected(shaped, reference.data(), rule);
    for (const double v : reference) out.push_back(static_cast<float>(v));
  }
  Comparison compare() const { return compare_output(shaped, out.data(), expected); }
  std::string text(const Poison& poison = {}) const {
    const Comparison comparison = compare();
    EXPECT_FALSE(comparison.ok());
    return describe_mismatch(shaped, out.data(), expected, comparison, poison);
  }
  Tensor tensor;
  Shaped shaped;
  Expected expected;
  std::vector<float> out;
};

TEST(Mismatch, HoldsTheContract) {
  Fixture f;
  EXPECT_TRUE(f.compare().ok());
  EXPECT_GT(f.expected.rms, 1.9);
  f.out[5] += static_cast<float>(0.9e-3 * f.expected.rms);
  EXPECT_TRUE(f.compare().ok());
  EXPECT_NEAR(f.compare().worst, 0.9e-3, 1.5e-4);
  f.out[5] += static_cast<float>(1.5e-3 * f.expected.rms);
  EXPECT_EQ(f.compare().wrong, 1);
  EXPECT_EQ(f.compare().first, 5);
}

TEST(Mismatch, AFewLargeResultsDoNotExcuseTheOthers) {
  Tensor tensor;
  const std::int64_t n = 5000;
  const Shaped shaped{&tensor, {n}, n, 4 * n};
  std::vector<double> reference;
  for (std::int64_t i = 0; i < n; ++i) reference.push_back(i % 7 == 0 ? 0 : i % 50 == 1 ? 1e6 : 1);
  std::vector<float> out;
  for (const double v : reference) out.push_back(v > 1 ? 1e6f : 0);
  Rule rule;
  rule.tolerance = 1e-4;
  const Expected expected = make_expected(shaped, reference.data(), rule);
  EXPECT_GT(expected.rms, 1e4);
  EXPECT_EQ(expected.scale, 10);
  EXPECT_GT(compare_output(shaped, out.data(), expected).wrong, n / 2);
  rule.typical = false;
  EXPECT_TRUE(
      compare_output(shaped, out.data(), make_expected(shaped, reference.data(), rule)).ok());
  // Values without the type's full precision are not typical.
  EXPECT_EQ(scale_of(3, {0, 1e-40, 1e-40, 1e-40, 0.5}, DType::kFp32), 3);
  EXPECT_DOUBLE_EQ(scale_of(3, {1e-30, 1e-30, 0.5}, DType::kFp32), 1e-29);
  EXPECT_EQ(scale_of(3, {1e-6, 1e-6, 0.1}, DType::kFp16), 1);
}

// min(x, 0) of sums near 0.5: most results are 0, a few are small, with errors as large as for 0.5.
TEST(Mismatch, RoundingErrorsThatAResultsOwnSizeDoesNotShowAreAdmitted) {
  Tensor tensor;
  const std::int64_t n = 4000;
  const Shaped shaped{&tensor, {n}, n, 4 * n};
  std::vector<double> reference, rounded;
  std::vector<float> honest, tf32;
  for (std::int64_t i = 0; i < n; ++i) {
    const double r = i % 100 == 3 ? -1e-5 * static_cast<double>(1 + i % 7) : 0;
    reference.push_back(r);
    rounded.push_back(r == 0 ? 0 : r + 2e-6);
    honest.push_back(static_cast<float>(r == 0 ? 0 : r + 1e-7));
    tf32.push_back(static_cast<float>(r == 0 ? 0 : r + 1e-4));
  }
  Rule rule;
  rule.tolerance = 1e-4;
  Expected expected = make_expected(shaped, reference.data(), rule);
  EXPECT_FALSE(compare_output(shaped, honest.data(), expected).ok());
  const Admitted admitted = admit(rounded, &expected);
  EXPECT_EQ(admitted.worst, 0);
  EXPECT_EQ(admitted.jumps, 0u);
  EXPECT_NEAR(admitted.least, 2e-6 / 1e-4, 1e-9);
  EXPECT_TRUE(compare_output(shaped, honest.data(), expected).ok());
  EXPECT_FALSE(compare_output(shaped, tf32.data(), expected).ok());
  // Another set of the same kind gets the same allowance.
  EXPECT_TRUE(
      compare_output(shaped, honest.data(), make_expected(shaped, reference.data(), expected.rule))
          .ok());
}

TEST(Mismatch, AJumpIsNoRoundingError) {
  Fixture f;
  std::vector<double> rounded = f.expected.values;
  rounded[7] += 3;  // as sign(x) jumps near zero
  const Admitted admitted = admit(rounded, &f.expected);
  EXPECT_EQ(admitted.jumps, 1u);
  EXPECT_EQ(admitted.least, 0);
  EXPECT_EQ(admitted.worst, 0);
}

TEST(Mismatch, LargeResultsThatRoundingChangesDoNotExcuseSmallOnes) {
  Tensor tensor;
  const std::int64_t n = 1000;
  const Shaped shaped{&tensor, {n}, n, 4 * n};
  std::vector<double> reference, rounded;
  for (std::int64_t i = 0; i < n; ++i) {
    reference.push_back(i % 50 == 1 ? 1e6 : 1);
    rounded.push_back(reference.back() * (1 + 2e-5));
  }
  rounded[51] += 300;  // beyond the tolerance of a large result
  Rule rule;
  rule.tolerance = 1e-4;
  Expected expected = make_expected(shaped, reference.data(), rule);
  const Admitted admitted = admit(rounded, &expected);
  EXPECT_EQ(expected.scale, 10);
  EXPECT_EQ(admitted.least, 0);
  EXPECT_NEAR(admitted.worst, 3.2e-4, 1e-6);
  EXPECT_EQ(admitted.jumps, 0u);  // far below the root mean square
}

TEST(Mismatch, SmallValuesAreJudgedByTheTensorsScale) {
  Fixture f;
  f.expected.values[3] = 1e-9;
  f.out[3] = 1e-4f;
  EXPECT_TRUE(f.compare().ok());
}

TEST(Mismatch, NanAndInfinity) {
  Fixture f;
  f.out[20] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(contains(f.text(), "first at [1, 4]: got nan")) << f.text();
  EXPECT_TRUE(contains(f.text(), "all of them are NaN"));
  f.expected.values[20] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(f.compare().ok());
  f.out[20] = 1;
  EXPECT_EQ(f.compare().wrong, 1);
  f.expected.values[21] = std::numeric_limits<double>::infinity();
  f.out[21] = std::numeric_limits<float>::infinity();
  EXPECT_EQ(f.compare().wrong, 1);
  f.out[21] = -f.out[21];
  EXPECT_EQ(f.compare().wrong, 2);
}

TEST(Mismatch, Patterns) {
  {
    Fixture f;
    for (float& v : f.out) v += 1;
    EXPECT_TRUE(contains(f.text(), "every element is wrong"));
  }
  {
    Fixture f;
    for (std::size_t r = 0; r < 8; ++r) f.out[r * 16 + 15] = f.out[r * 16 + 14] = 0;
    EXPECT_TRUE(contains(f.text(), "only in the tail of rows, from column 14 of 16")) << f.text();
  }
  {
    Fixture f;
    for (std::size_t i = 120; i < 128; ++i) f.out[i] = 0;
    EXPECT_TRUE(contains(f.text(), "only the last 8 elements of the tensor")) << f.text();
  }
  {
    Fixture f;
    for (std::size_t i = 1; i < 128; i += 3) f.out[i] = 0;
    EXPECT_TRUE(contains(f.text(), "every 3rd element")) << f.text();
  }
  {
    Fixture f;
    for (std::size_t i = 48; i < 64; i += 2) f.out[i] = 0;
    EXPECT_TRUE(contains(f.text(), "only in row 3 of 8")) << f.text();
  }
}

TEST(Mismatch, WhatWasNeverWritten) {
  for (std::uint64_t round = 0; round < 8; ++round) {
    Fixture f;
    const std::vector<float> right = f.out;
    const Poison poison = make_poison(DType::kFp32, round);
    fill_poison(poison, f.out.data(), f.shaped.bytes);
    EXPECT_EQ(f.compare().wrong, f.shaped.elements) << round;
    std::copy(right.begin() + 4, right.end(), f.out.begin() + 4);
    EXPECT_TRUE(contains(f.text(poison), "never written")) << f.text(poison);
    EXPECT_TRUE(contains(f.text(poison), "4 of 128 elements are wrong, first at [0, 0]"));
  }
}

TEST(Mismatch, PoisonsDiffer) {
  for (const DType dtype :
       {DType::kFp32, DType::kFp16, DType::kBf16, DType::kInt32, DType::kBool}) {
    EXPECT_NE(make_poison(dtype, 0).pattern, make_poison(dtype, 1).pattern);
    EXPECT_EQ(make_poison(dtype, 5).pattern, make_poison(dtype, 5).pattern);
  }
}

TEST(Mismatch, IntegersMustBeEqual) {
  Tensor tensor;
  tensor.dtype = DType::kInt64;
  const Shaped shaped{&tensor, {4}, 4, 32};
  const std::int64_t reference[4] = {1, 2, 3, 4};
  std::int64_t out[4] = {1, 2, 3, 4};
  const Expected expected = make_expected(shaped, reference, {});
  EXPECT_TRUE(compare_output(shaped, out, expected).ok());
  out[2] = 4;
  const Comparison comparison = compare_output(shaped, out, expected);
  EXPECT_EQ(comparison.wrong, 1);
  EXPECT_TRUE(contains(describe_mismatch(shaped, out, expected, comparison, {}),
                       "first at [2]: got 4, expected 3"));
}

TEST(Mismatch, HalvesAndLargeTensors) {
  Tensor tensor;
  tensor.dtype = DType::kFp16;
  const std::int64_t n = 3 << 20;
  const Shaped shaped{&tensor, {n}, n, 2 * n};
  std::vector<double> reference(static_cast<std::size_t>(n), 0.5);
  std::vector<unsigned short> out(static_cast<std::size_t>(n), kp::to_half(0.5f));
  Rule rule;
  rule.tolerance = 1e-2;
  const Expected expected = make_expected(shaped, reference.data(), rule);
  EXPECT_NEAR(expected.rms, 0.5, 1e-12);
  EXPECT_TRUE(compare_output(shaped, out.data(), expected).ok());
  out[2900000] = kp::to_half(0.75f);
  out[7] = kp::to_half(0.75f);
  const Comparison comparison = compare_output(shaped, out.data(), expected);
  EXPECT_EQ(comparison.wrong, 2);
  EXPECT_EQ(comparison.first, 7);
  EXPECT_DOUBLE_EQ(comparison.worst, 0.5);
}

TEST(Mismatch, AnInfinityIsNothingElse) {
  Fixture f;
  f.expected.values[21] = std::numeric_limits<double>::infinity();
  EXPECT_EQ(f.compare().wrong, 1);
  f.out[21] = std::numeric_limits<float>::infinity();
  EXPECT_TRUE(f.compare().ok());
  f.out[40] = std::numeric_limits<float>::infinity();
  EXPECT_EQ(f.compare().wrong, 1);
}

TEST(Mismatch, AllcloseIsTorchs) {
  Fixture f;
  f.expected.rule = {Rule::Kind::kAllclose, 0, 1e-4, 1e-4};
  EXPECT_EQ(allowed_error(f.expected.rule), 1);
  f.expected.values[3] = 0;
  f.out[3] = 0.99e-4f;
  EXPECT_TRUE(f.compare().ok());
  EXPECT_NEAR(f.compare().worst, 0.99, 1e-3);
  f.out[3] = 1.01e-4f;  // the contract's scale would let it pass
  EXPECT_EQ(f.compare().wrong, 1);
  EXPECT_TRUE(contains(f.text(), "1.01 times what 0.0001 + 0.0001 |output| allows")) << f.text();
  f.out[3] = 0;
  f.expected.values[7] = std::numeric_limits<double>::quiet_NaN();
  f.out[7] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(f.compare().wrong, 1);  // NaN equals nothing
  f.expected.values[7] = -std::numeric_limits<double>::infinity();
  f.out[7] = -std::numeric_limits<float>::infinity();
  EXPECT_TRUE(f.compare().ok());
}

TEST(Mismatch, AllcloseTakesIntegersAsNumbers) {
  Tensor tensor;
  tensor.dtype = DType::kInt32;
  const Shaped shaped{&tensor, {2}, 2, 8};
  const std::int32_t reference[2] = {100000, 5};
  const Expected expected =
      make_expected(shaped, reference, {Rule::Kind::kAllclose, 0, 1e-4, 1e-4});
  const std::int32_t near[2] = {100009, 5}, far[2] = {100000, 6};
  EXPECT_TRUE(compare_output(shaped, near, expected).ok());
  EXPECT_EQ(compare_output(shaped, far, expected).wrong, 1);
}

TEST(Mismatch, ExpectedInTheDeclaredType) {
  Tensor tensor;
  tensor.dtype = DType::kFp16;
  const Shaped shaped{&tensor, {2}, 2, 4};
  const unsigned short reference[2] = {kp::to_half(0.5f), kp::to_half(-2.0f)};
  const Expected expected = make_expected(shaped, reference, {}, false);
  EXPECT_EQ(expected.values[0], 0.5);
  EXPECT_EQ(expected.values[1], -2.0);
  EXPECT_TRUE(compare_output(shaped, reference, expected).ok());
}

TEST(Mismatch, Coordinates) {
  EXPECT_EQ(coordinates({8, 128}, 145), "[1, 17]");
  EXPECT_EQ(coordinates({}, 0), "[0]");
}

}  // namespace
}  // namespace kernelpro
