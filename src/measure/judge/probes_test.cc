// SPDX-License-Identifier: Apache-2.0
#include "measure/judge/probes.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "base/text.h"
#include "core/inputs.h"
#include "core/key.h"

namespace kernelpro {
namespace {

Tensor tensor(const std::string& name, Role role, const Init& init, DType dtype = DType::kFp32) {
  Tensor t;
  t.name = name;
  t.role = role;
  t.init = init;
  t.dtype = dtype;
  return t;
}

Task task_with(const Init& input, const Init& parameter, DType dtype = DType::kFp32) {
  Task task;
  task.tensors = {tensor("x", Role::kInput, input, dtype),
                  tensor("w", Role::kParameter, parameter, dtype),
                  tensor("y", Role::kOutput, {}, dtype)};
  return task;
}

const Init kUnit{Init::Kind::kUniform, 0, 1};
const Init kStandard{Init::Kind::kNormal, 0, 1};
const Init kOnes{Init::Kind::kConstant, 1, 0};

TEST(Probes, OnlyThoseThatChangeSomething) {
  const std::vector<ProbePlan> all = plan_probes(task_with(kUnit, kOnes));
  ASSERT_EQ(all.size(), 4u);
  EXPECT_EQ(all[3].kind, DrawKind::kLowBits);
  EXPECT_EQ(all[3].inits[0].b, 1);
  EXPECT_EQ(all[0].kind, DrawKind::kCentred);
  EXPECT_EQ(all[0].inits[0].a, -0.5);
  EXPECT_EQ(all[0].inits[0].b, 0.5);
  EXPECT_EQ(all[0].inits[1].kind, Init::Kind::kConstant);
  EXPECT_EQ(all[1].inits[0].b, 64);
  EXPECT_EQ(all[2].inits[1].kind, Init::Kind::kUniform);
  EXPECT_GT(all[2].inits[1].a, 0);  // a scale or variance stays positive

  const std::vector<ProbePlan> centred_already = plan_probes(task_with(kStandard, kStandard));
  ASSERT_EQ(centred_already.size(), 2u);
  EXPECT_EQ(centred_already[0].kind, DrawKind::kScaled);
  EXPECT_EQ(centred_already[1].kind, DrawKind::kLowBits);
  EXPECT_TRUE(plan_probes(task_with({Init::Kind::kBernoulli, 0.5, 0}, kStandard)).empty());
}

TEST(Probes, FarFromZeroCountsAsNeverChangingSign) {
  const auto plans = plan_probes(task_with({Init::Kind::kNormal, 1000, 0.1}, kStandard));
  ASSERT_EQ(plans.size(), 3u);
  EXPECT_EQ(plans[0].inits[0].a, 0);
  EXPECT_EQ(plans[0].inits[0].b, 0.1);
}

TEST(Probes, IntegersAndHalves) {
  const auto halves = plan_probes(task_with(kUnit, kStandard, DType::kFp16));
  ASSERT_EQ(halves.size(), 2u);
  EXPECT_EQ(halves[1].inits[0].b, 4);
  EXPECT_TRUE(plan_probes(task_with({Init::Kind::kIntegers, 0, 9}, kOnes, DType::kInt64)).empty());
  const auto counts = plan_probes(task_with({Init::Kind::kIntegers, 0, 9}, kStandard));
  ASSERT_EQ(counts.size(), 1u);
  EXPECT_EQ(counts[0].inits[0].b - counts[0].inits[0].a, 9);
  EXPECT_LT(counts[0].inits[0].a, 0);
}

ProbeFailure failure(DrawKind kind, double error, std::int64_t elements = 4096) {
  ProbeFailure f;
  f.kind = kind;
  f.case_name = "small";
  f.what = "4 of 8 elements are wrong";
  f.error = error;
  f.tolerance = 1e-4;
  f.elements = elements;
  return f;
}

TEST(Probes, RoundingIsRejectedUnderFp32Alone) {
  const std::vector<ProbeFailure> rounded = {failure(DrawKind::kCentred, 4e-4)};
  const ProbeVerdict verdict = judge_probes(Precision::kFp32, rounded);
  ASSERT_TRUE(verdict.rejected);
  EXPECT_EQ(verdict.rejected->rule, "precision");
  EXPECT_TRUE(contains(verdict.rejected->reason, "0.0004")) << verdict.rejected->reason;
  EXPECT_FALSE(judge_probes(Precision::kTf32, rounded).rejected);
  EXPECT_TRUE(judge_probes(Precision::kFp32, {failure(DrawKind::kLowBits, 4e-4)}).rejected);
  EXPECT_FALSE(judge_probes(Precision::kFp32, {failure(DrawKind::kScaled, 4e-4)}).rejected);
  EXPECT_FALSE(judge_probes(Precision::kFp32, {failure(DrawKind::kCentred, 0.7)}).rejected);
  EXPECT_FALSE(judge_probes(Precision::kFp32, {failure(DrawKind::kCentred, 4e-4, 1)}).rejected);
  EXPECT_FALSE(judge_probes(Precision::kFp32, {}).rejected);
}

// Sums of products of non-negative numbers: fp32 is right on them whatever their last digits are,
// and rounded operands are not.
TEST(Probes, LastDigitsThatRoundOneWayShowRounding) {
  Tensor x = tensor("x", Role::kInput, kUnit);
  EXPECT_TRUE(leans(x));
  const std::int64_t n = 4096;
  const Shaped shaped{&x, {n}, n, 4 * n};
  for (const std::uint64_t seed : {1u, 2u, 3u, 4u}) {
    std::vector<char> data(static_cast<std::size_t>(4 * n));
    draw_inputs(x, 0, key_of(seed), 0, n, data.data());
    std::vector<char> leaning = data;
    lean(shaped, kp::mix64(seed), &leaning);
    double exact = 0;
    std::vector<double> rounded(24, 0);
    for (std::int64_t i = 0; i < n; ++i) {
      float before = 0, after = 0;
      std::memcpy(&before, data.data() + 4 * i, 4);
      std::memcpy(&after, leaning.data() + 4 * i, 4);
      EXPECT_NEAR(after, before, before / 64);
      exact += static_cast<double>(after);
      for (int cut = 10; cut <= 15; ++cut) {
        const unsigned half = 1u << (cut - 1), mask = ~((1u << cut) - 1);
        const unsigned bits = (kp::float_bits(after) + half) & mask;
        rounded[static_cast<std::size_t>(cut)] += static_cast<double>(kp::bits_float(bits));
      }
    }
    // A third of a digit, of which two thirds stay over numbers between 1 and 2.
    for (int cut = 10; cut <= 15; ++cut) {
      const double error = std::fabs(rounded[static_cast<std::size_t>(cut)] / exact - 1);
      EXPECT_GT(error, 0.5 * 0.22 * std::ldexp(1, cut - 23)) << cut;
    }
  }
  std::vector<char> whole(16, 0);
  const float values[] = {0, 1, -3, 512};
  std::memcpy(whole.data(), values, 16);
  const std::vector<char> before = whole;
  lean({&x, {4}, 4, 16}, 5, &whole);
  EXPECT_EQ(whole, before);
}

TEST(Probes, OtherFailuresAreLabelledOnce) {
  const ProbeVerdict verdict = judge_probes(
      Precision::kFp32, {failure(DrawKind::kCentred, 0.7), failure(DrawKind::kScaled, INFINITY),
                         failure(DrawKind::kParameters, 1)});
  EXPECT_FALSE(verdict.rejected);
  ASSERT_EQ(verdict.labels.size(), 2u);
  EXPECT_EQ(verdict.labels[0], kGivenDistributionOnly);
  EXPECT_EQ(verdict.labels[1], kGivenParametersOnly);
  ASSERT_EQ(verdict.notes.size(), 2u);
  EXPECT_TRUE(contains(verdict.notes[0], "centred on zero (case small): 4 of 8"))
      << verdict.notes[0];
}

TEST(Probes, FailuresKnowTheirOutput) {
  const Task task = task_with(kUnit, kOnes);
  Shaped y;
  y.tensor = &task.tensors[2];
  y.elements = 77;
  const ProbeFailure wrong =
      probe_failure(DrawKind::kCentred, "c", WrongResult{"c", "y", "3 wrong", 0.25, 1e-4}, {y});
  EXPECT_EQ(wrong.elements, 77);
  EXPECT_EQ(wrong.error, 0.25);
  const ProbeFailure crash = probe_failure(DrawKind::kCentred, "c", Crashed{"fell over", ""}, {y});
  EXPECT_TRUE(contains(crash.what, "fell over"));
  EXPECT_FALSE(std::isfinite(crash.error));
}

}  // namespace
}  // namespace kernelpro
