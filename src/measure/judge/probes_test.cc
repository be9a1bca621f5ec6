// SPDX-License-Identifier: Apache-2.0
#include "measure/judge/probes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>

#include "base/text.h"
#include "core/evaluation/label.h"
#include "core/task/inputs.h"
#include "core/task/key.h"
#include "measure/judge/probe_shapes.h"

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

std::vector<DrawKind> kinds(const Task& task) {
  std::vector<DrawKind> all;
  for (const ProbePlan& plan : plan_probes(task)) all.push_back(plan.kind);
  return all;
}
bool has(const std::vector<DrawKind>& all, DrawKind kind) {
  return std::find(all.begin(), all.end(), kind) != all.end();
}
ProbePlan plan_of(const Task& task, DrawKind kind) {
  for (ProbePlan& plan : plan_probes(task)) {
    if (plan.kind == kind) return plan;
  }
  ADD_FAILURE() << "no such probe";
  return {DrawKind::kGiven, {task.tensors[0].init, task.tensors[1].init}};
}

TEST(Probes, OnlyThoseThatChangeSomething) {
  const Task task = task_with(kUnit, kOnes);
  EXPECT_EQ(plan_of(task, DrawKind::kLowBits).inits[0].b, 1);
  EXPECT_EQ(plan_of(task, DrawKind::kCentred).inits[0].a, -0.5);
  EXPECT_EQ(plan_of(task, DrawKind::kCentred).inits[0].b, 0.5);
  EXPECT_EQ(plan_of(task, DrawKind::kCentred).inits[1].kind, Init::Kind::kConstant);
  EXPECT_EQ(plan_of(task, DrawKind::kScaled).inits[0].b, 64);
  EXPECT_EQ(plan_of(task, DrawKind::kParameters).inits[1].kind, Init::Kind::kUniform);
  EXPECT_GT(plan_of(task, DrawKind::kParameters).inits[1].a, 0);  // a variance stays positive
  EXPECT_FALSE(has(kinds(task), DrawKind::kLargeParameters));
  EXPECT_FALSE(has(kinds(task), DrawKind::kEnds));

  const std::vector<DrawKind> centred_already = kinds(task_with(kStandard, kStandard));
  EXPECT_FALSE(has(centred_already, DrawKind::kCentred));
  EXPECT_FALSE(has(centred_already, DrawKind::kParameters));
  for (const DrawKind kind :
       {DrawKind::kTiny, DrawKind::kHeavy, DrawKind::kRepeated, DrawKind::kRows, DrawKind::kTop,
        DrawKind::kSparse, DrawKind::kLargeParameters, DrawKind::kTinyParameters}) {
    EXPECT_TRUE(has(centred_already, kind)) << probe_words(kind);
  }
  const std::vector<DrawKind> masks = kinds(task_with({Init::Kind::kBernoulli, 0.5, 0}, kOnes));
  EXPECT_EQ(masks, (std::vector<DrawKind>{DrawKind::kParameters, DrawKind::kEnds, DrawKind::kEqual,
                                          DrawKind::kRamp, DrawKind::kFewParameters,
                                          DrawKind::kFewParameters, DrawKind::kRuns}));
}

TEST(Probes, FarFromZeroCountsAsNeverChangingSign) {
  const Task task = task_with({Init::Kind::kNormal, 1000, 0.1}, kStandard);
  EXPECT_EQ(plan_of(task, DrawKind::kCentred).inits[0].a, 0);
  EXPECT_EQ(plan_of(task, DrawKind::kCentred).inits[0].b, 0.1);
}

TEST(Probes, IntegersAndHalves) {
  const Task halves = task_with(kUnit, kStandard, DType::kFp16);
  EXPECT_EQ(plan_of(halves, DrawKind::kScaled).inits[0].b, 4);
  EXPECT_FALSE(has(kinds(halves), DrawKind::kLowBits));
  EXPECT_FALSE(has(kinds(halves), DrawKind::kSparse));
  EXPECT_EQ(
      kinds(task_with({Init::Kind::kIntegers, 0, 9}, kOnes, DType::kInt64)),
      (std::vector<DrawKind>{DrawKind::kEnds, DrawKind::kEqual, DrawKind::kRamp, DrawKind::kRuns}));
  EXPECT_EQ(
      kinds(task_with(kOnes, kStandard, DType::kBool)),
      (std::vector<DrawKind>{DrawKind::kConstants, DrawKind::kFewInputs, DrawKind::kFewInputs}));
  const Task counts = task_with({Init::Kind::kIntegers, 0, 9}, kStandard);
  const Init centred = plan_of(counts, DrawKind::kCentred).inits[0];
  EXPECT_EQ(centred.b - centred.a, 9);
  EXPECT_LT(centred.a, 0);
}

TEST(Probes, EqualElementsAreLeftOutWhereAnIndexCouldNameEither) {
  Task task = task_with(kUnit, kOnes);
  const DrawKind equal[] = {DrawKind::kRepeated, DrawKind::kTop, DrawKind::kZeros,
                            DrawKind::kSparing};
  for (const DrawKind kind : equal) EXPECT_TRUE(has(kinds(task), kind)) << probe_words(kind);
  task.tensors.push_back(tensor("at", Role::kOutput, {}, DType::kInt64));
  for (const DrawKind kind : equal) EXPECT_FALSE(has(kinds(task), kind)) << probe_words(kind);
}

TEST(Probes, AFewAtATimeHalfOfThemReady) {
  EXPECT_EQ(choose_probes({0, 0, 0}, 0, 1).size(), 3u);
  EXPECT_EQ(choose_probes({0, 0, 0}, 9, 1).size(), 3u);
  std::vector<int> often(8);
  for (std::uint64_t round = 0; round < 200; ++round) {
    const std::vector<std::size_t> chosen = choose_probes({1, 1, 0, 0, 0, 0, 0, 0}, 4, round * 977);
    ASSERT_EQ(chosen.size(), 4u);
    EXPECT_EQ(std::set<std::size_t>(chosen.begin(), chosen.end()).size(), 4u);
    for (const std::size_t i : chosen) ++often[i];
  }
  EXPECT_EQ(often[0] + often[1], 400);
  for (std::size_t i = 2; i < 8; ++i) EXPECT_GT(often[i], 20) << i;
}

TEST(Probes, EachOfAFewInputsGetsLargeInTurn) {
  Task task = task_with(kUnit, kOnes);
  EXPECT_FALSE(has(kinds(task), DrawKind::kLone));
  for (const std::size_t inputs : {2u, 4u, 6u}) {
    while (task.tensors.size() < inputs + 2) {
      task.tensors.push_back(tensor("x", Role::kInput, kStandard));
    }
    std::set<int> which;
    std::size_t plans = 0;
    for (const ProbePlan& plan : plan_probes(task)) {
      if (plan.kind != DrawKind::kLone) continue;
      which.insert(plan.tensor);
      ++plans;
    }
    EXPECT_EQ(plans, std::min<std::size_t>(inputs, 4));
    EXPECT_EQ(which.size(), inputs > 4 ? 1u : inputs) << "of many, any";
    EXPECT_EQ(which.contains(-1), inputs > 4);
  }
}

// A slow reference leaves time for few: what shows most comes first, and one of each class.
TEST(Probes, TheTellingOnesComeFirst) {
  Task task = task_with(kUnit, kOnes);
  task.tensors.push_back(tensor("z", Role::kInput, kUnit));
  const std::vector<ProbePlan> plans = plan_probes(task);
  std::set<DrawKind> last;
  for (std::uint64_t round = 0; round < 50; ++round) {
    std::vector<std::size_t> order =
        choose_probes(std::vector<char>(plans.size()), 0, kp::mix64(round));
    const std::size_t telling = put_telling_first(plans, &order);
    // Three of products, two of faint inputs, one of each other class, two inputs alone.
    EXPECT_EQ(telling, 13u);
    ASSERT_EQ(std::set<std::size_t>(order.begin(), order.end()).size(), plans.size());
    EXPECT_TRUE(wants_products(plans[order[0]].kind));
    std::vector<DrawKind> first;
    for (std::size_t k = 0; k < telling; ++k) first.push_back(plans[order[k]].kind);
    EXPECT_EQ(std::count(first.begin(), first.end(), DrawKind::kLone), 2);
    EXPECT_TRUE(has(first, DrawKind::kParameters));
    EXPECT_TRUE(has(first, DrawKind::kScaled) || has(first, DrawKind::kTiny));
    EXPECT_TRUE(has(first, DrawKind::kFewInputs) || has(first, DrawKind::kOutliers));
    last.insert(plans[order.back()].kind);
  }
  EXPECT_GT(last.size(), 5u) << "an order that nobody knows";
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
  for (const std::uint64_t seed : {1u, 2u, 3u, 4u}) {
    std::vector<char> data(static_cast<std::size_t>(4 * n));
    draw_inputs(x, 0, key_of(seed), 0, n, data.data());
    std::vector<char> leaning = data;
    lean(kp::mix64(seed), &leaning);
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
  lean(5, &whole);
  EXPECT_EQ(whole, before);
}

NormError sparse(double norm, double worst, double nudged = 1.35e-6) {
  return {"large", "y", {norm, worst}, {nudged, 5e-6}, DrawKind::kSparse};
}

// The deviations are measured ones, of products and of Winograd's algorithm.
TEST(Probes, SparseInputsShowThePrecisionOfProducts) {
  EXPECT_TRUE(judge_probes(Precision::kFp32, {}, {sparse(3.2e-6, 4e-5)}).rejected);  // two bf16
  const ProbeVerdict plain = judge_probes(Precision::kFp32, {}, {sparse(3e-8, 1e-7)});
  EXPECT_FALSE(plain.rejected);
  EXPECT_TRUE(plain.labels.empty());
  const ProbeVerdict winograd = judge_probes(Precision::kFp32, {}, {sparse(1.6e-6, 1.4e-5)});
  EXPECT_FALSE(winograd.rejected);
  EXPECT_EQ(winograd.labels,
            std::vector<std::string>{std::string(label_name(Label::kPreciseByNorm))});
  EXPECT_EQ(winograd.notes.size(), 1u);
  EXPECT_FALSE(judge_probes(Precision::kFp32, {}, {sparse(9e-7, 2e-6, 0)}).rejected);
}

NormError dense(double norm, double nudged = 1.4e-6, DrawKind kind = DrawKind::kGiven) {
  return {"large", "y", {norm, 10 * norm}, {nudged, 10 * nudged}, kind};
}

// The norms are measured ones, of products of zero mean with sums of 1152 and 4608 terms.
TEST(Probes, NormsOnUsualInputsShowCoarseArithmetic) {
  const auto labels = [](const NormError& error) {
    const ProbeVerdict verdict = judge_probes(Precision::kFp32, {}, {error});
    EXPECT_FALSE(verdict.rejected);
    EXPECT_EQ(verdict.labels.size(), verdict.notes.size());
    return verdict.labels;
  };
  const std::vector<std::string> coarser = {std::string(label_name(Label::kCoarserThanFp32))};
  EXPECT_TRUE(labels(dense(6.1e-7)).empty()) << "plain";
  EXPECT_TRUE(labels(dense(1.2e-6, 2.0e-6)).empty()) << "plain";
  EXPECT_EQ(labels(dense(4.4e-6)), coarser) << "two bf16 parts";
  EXPECT_EQ(labels(dense(4.4e-6, 1.4e-6, DrawKind::kCentred)), coarser);
  EXPECT_EQ(labels(dense(4.5e-6, 2.0e-6)), coarser) << "Winograd F(4x4)";
  EXPECT_TRUE(labels(dense(3e-4, 0)).empty()) << "nothing is known";
  EXPECT_TRUE(judge_probes(Precision::kFp32, {}, {dense(3e-4)}).rejected) << "TF32";
  EXPECT_FALSE(judge_probes(Precision::kTf32, {}, {dense(3e-4)}).rejected);
}

TEST(Probes, TheLargestNormCounts) {
  std::vector<NormError> all;
  for (const double norm : {1e-7, 3e-4, 2e-7}) add_norm(dense(norm), &all);
  add_norm(dense(1e-7, 1.4e-6, DrawKind::kCentred), &all);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].got.norm, 3e-4);
  EXPECT_TRUE(judge_probes(Precision::kFp32, {}, all).rejected);
}

TEST(Probes, OtherFailuresAreLabelledOnce) {
  const ProbeVerdict verdict = judge_probes(
      Precision::kFp32, {failure(DrawKind::kCentred, 0.7), failure(DrawKind::kScaled, INFINITY),
                         failure(DrawKind::kParameters, 1)});
  EXPECT_FALSE(verdict.rejected);
  ASSERT_EQ(verdict.labels.size(), 2u);
  EXPECT_EQ(verdict.labels[0], label_name(Label::kGivenDistributionOnly));
  EXPECT_EQ(verdict.labels[1], label_name(Label::kGivenParametersOnly));
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
