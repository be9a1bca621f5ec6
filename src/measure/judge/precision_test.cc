// SPDX-License-Identifier: Apache-2.0
#include "measure/judge/precision.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "base/text.h"
#include "core/evaluation/label.h"
#include "core/task/inputs.h"
#include "core/task/key.h"
#include "core/task/mismatch.h"
#include "measure/judge/probes.h"

namespace kernelpro {
namespace {

// The error in norm of a plain sum of `length` products, over that of the exact ones.
double plain_sum(std::int64_t length, bool positive) {
  double errors = 0, sizes = 0;
  for (std::uint64_t sum = 0; sum < 64; ++sum) {
    float got = 0;
    double exact = 0;
    for (std::int64_t i = 0; i < length; ++i) {
      const std::uint64_t word = kp::mix64(sum * 1000003 + static_cast<std::uint64_t>(i));
      const float shift = positive ? 0 : 0.5f;
      const float a = kp::unit_float(word) - shift, b = kp::unit_float(word << 24) - shift;
      got = std::fma(a, b, got);
      exact += static_cast<double>(a) * static_cast<double>(b);
    }
    errors += (static_cast<double>(got) - exact) * (static_cast<double>(got) - exact);
    sizes += exact * exact;
  }
  return std::sqrt(errors / sizes);
}

TEST(Precision, PlainSumsAreWithinWhatNudgedInputsAllow) {
  for (const std::int64_t length : {16, 256, 4096, 65536}) {
    const auto n = static_cast<double>(length);
    // Products of two nudged factors; the sum has either sign, or is the larger by sqrt(n).
    const double products = std::sqrt(2.0) * 0x1p-20 * sums_nudge(n);
    const Deviation either = with_sums({products, 0}, n);
    const Deviation one = with_sums({products / std::sqrt(n), 0}, n);
    EXPECT_LT(plain_sum(length, false), either.norm) << length;
    EXPECT_LT(plain_sum(length, true), one.norm) << length;
    EXPECT_LT(either.norm, 1.6e-6 * std::max(1.0, std::sqrt(n) / 40)) << "two bf16 parts: 4e-6";
  }
}

TEST(Precision, NormsThatFewElementsDecideAreNotKnown) {
  EXPECT_EQ(steady({1e-6, 1e-5}, 4096, 5, 1).norm, 1e-6);
  EXPECT_EQ(steady({1e-6, 1e-5}, 100, 20, 1).norm, 0) << "nor of fewer elements";
  EXPECT_EQ(steady({1e-6, 2e-6}, 100, 4, 1).norm, 1e-6);
  EXPECT_EQ(steady({1e-6, 1e-6}, 8, 1, 1).norm, 0) << "too few";
  EXPECT_EQ(steady({1e-6, 1e-5}, 4096, 500, 1).norm, 0) << "one element decides";
  EXPECT_EQ(steady({1e-6, 1e-4}, 4096, 5, 1).norm, 0) << "one error decides";
}

TEST(Precision, WhereFewElementsDecideEachCountsByItsOwnSize) {
  Deviation nudged{1e-6, 1e-5};
  nudged.relative = 2e-6;
  nudged.relative_worst = 1e-5;
  const Deviation tail = steady(nudged, 4096, 500, 1);
  EXPECT_EQ(tail.norm, 0);
  EXPECT_EQ(tail.relative, 2e-6);
  EXPECT_EQ(steady(nudged, 4096, 5, 1).relative, 0) << "the norm counts";
  nudged.relative_worst = 1e-3;
  EXPECT_EQ(steady(nudged, 4096, 500, 1).relative, 0);
}

TEST(Precision, WhatIsLostBesideLargerResultsIsTold) {
  NormError error;
  error.case_name = "only", error.tensor = "y";
  error.kind = DrawKind::kRows;
  error.shape = {64, 64};
  error.got.lost = 0.02;
  const std::vector<Imprecision> found = judge_norm(error, "here");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].kind, Imprecision::Kind::kLost);
  error.nudged.lost = 0.01;
  EXPECT_TRUE(judge_norm(error, "here").empty()) << "honest rounding loses as much";
  error.nudged.lost = 0;
  error.shape = {8};
  error.got.lost = 1.0 / 8;
  EXPECT_TRUE(judge_norm(error, "here").empty()) << "one of few may cancel by chance";
  error.got.lost = 3.0 / 8;
  EXPECT_EQ(judge_norm(error, "here").size(), 1u);
  const ProbeVerdict verdict = judge_probes(Precision::kFp32, {}, {error});
  ASSERT_EQ(verdict.labels.size(), 1u);
  EXPECT_EQ(verdict.labels[0], label_name(Label::kGivenDistributionOnly));
}

float cut(float value, int bits) {
  const float unit = std::ldexp(1.0f, std::ilogb(value) - bits + 1);
  return std::round(value / unit) * unit;
}

// A product of random factors, exactly, nudged and in several arithmetics.
class Product {
 public:
  static constexpr int kRows = 40, kColumns = 48, kTerms = 160;

  // `shift`: of uniform factors; 0: all are positive.
  Product(std::uint64_t seed, float shift) : seed_(seed) {
    for (int i = 0; i < kRows * kTerms; ++i) a_.push_back(uniform() - shift);
    for (int i = 0; i < kTerms * kColumns; ++i) b_.push_back(uniform() - shift);
    task_.tensors.resize(1);
    output_ = {task_.tensors.data(), {kRows, kColumns}, kRows * kColumns, 4 * kRows * kColumns};
    exact_ = product<double>([](float value) { return static_cast<double>(value); }, plain<double>);
    expected_ = make_expected(output_, exact_.data(), {});
  }

  template <class Number>
  using Sum = std::function<Number(const Number*, const Number*)>;
  template <class Number>
  static Number plain(const Number* a, const Number* b) {
    Number sum = 0;
    for (int k = 0; k < kTerms; ++k) sum = sum + a[k] * b[k];
    return sum;
  }
  static float fused(const float* a, const float* b) {
    float sum = 0;
    for (int k = 0; k < kTerms; ++k) sum = std::fma(a[k], b[k], sum);
    return sum;
  }
  static float pairwise(const float* a, const float* b) {
    std::vector<float> sums;
    for (int k = 0; k < kTerms; ++k) sums.push_back(a[k] * b[k]);
    while (sums.size() > 1) {
      std::vector<float> next;
      for (std::size_t k = 0; k + 1 < sums.size(); k += 2) next.push_back(sums[k] + sums[k + 1]);
      if (sums.size() % 2 == 1) next.push_back(sums.back());
      sums = next;
    }
    return sums[0];
  }
  // Each product of a sum is added to what has been rounded towards zero.
  static float truncated(const float* a, const float* b) {
    float sum = 0;
    for (int k = 0; k < kTerms; ++k) {
      const double exact = static_cast<double>(sum) + static_cast<double>(a[k]) * b[k];
      sum = static_cast<float>(exact);
      if (std::fabs(static_cast<double>(sum)) > std::fabs(exact)) sum = std::nextafter(sum, 0.0f);
    }
    return sum;
  }

  // What is wrong with results of factors after `change`.
  std::vector<Imprecision> judge(const std::function<float(float)>& change, const Sum<float>& sum) {
    const double nudge = 0x1p-20 * sums_nudge(kTerms);
    const auto nudged = product<double>(
        [&](float value) { return value * (1 + (uniform() < 0.5f ? nudge : -nudge)); },
        plain<double>);
    NormError error{"c",
                    "y",
                    deviation(product<float>(change, sum), expected_, output_.shape),
                    with_sums(deviation(nudged, expected_, output_.shape), kTerms),
                    DrawKind::kGiven,
                    output_.shape};
    error.length = kTerms;
    error.linear = true;
    return judge_norm(error, "on the task's own inputs");
  }

 private:
  float uniform() { return kp::unit_float(kp::mix64(seed_ * 1000003 + ++drawn_)); }
  template <class Number>
  std::vector<double> product(const std::function<Number(float)>& change, const Sum<Number>& sum) {
    std::vector<Number> a, b(b_.size());
    for (const float value : a_) a.push_back(change(value));
    for (int k = 0; k < kTerms; ++k) {
      for (int j = 0; j < kColumns; ++j) {
        b[static_cast<std::size_t>(j * kTerms + k)] =
            change(b_[static_cast<std::size_t>(k * kColumns + j)]);
      }
    }
    std::vector<double> results;
    for (int i = 0; i < kRows; ++i) {
      for (int j = 0; j < kColumns; ++j) {
        results.push_back(static_cast<double>(sum(&a[static_cast<std::size_t>(i * kTerms)],
                                                  &b[static_cast<std::size_t>(j * kTerms)])));
      }
    }
    return results;
  }

  std::uint64_t seed_, drawn_ = 0;
  Task task_;
  std::vector<float> a_, b_;
  Shaped output_;
  std::vector<double> exact_;
  Expected expected_;
};

TEST(Precision, PlainProductsPassInEveryOrderAndSixteenBitsDoNot) {
  const auto same = [](float value) { return value; };
  const auto sixteen = [](float value) { return cut(value, 16); };
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    for (const float shift : {0.0f, 0.5f}) {
      Product product(seed, shift);
      for (const auto& sum : {Product::plain<float>, Product::fused, Product::pairwise}) {
        const auto found = product.judge(same, sum);
        EXPECT_TRUE(found.empty()) << seed << ", " << shift << ": " << found[0].what;
      }
      // Rows do not err alike because their sums drift alike.
      for (const Imprecision& found : product.judge(same, Product::truncated)) {
        EXPECT_FALSE(contains(found.what, "means")) << seed << ", " << shift << ": " << found.what;
      }
      EXPECT_FALSE(product.judge(sixteen, Product::fused).empty()) << seed << ", " << shift;
    }
  }
}

TEST(Precision, WhatIsNotAccountedForIsLabelled) {
  NormError error{"c", "y", {1e-3, 1e-2}, {1e-6, 5e-6}, DrawKind::kGiven, {64, 64}};
  EXPECT_EQ(judge_norm(error, "").at(0).kind, Imprecision::Kind::kRejected);
  error.accounted = false;
  EXPECT_EQ(judge_norm(error, "").at(0).kind, Imprecision::Kind::kCoarser);
  error.tolerance = 0.1;
  EXPECT_TRUE(judge_norm(error, "").empty()) << "its author allows for that much";
}

TEST(Precision, AResultReachesWhatChangesIt) {
  Task task;
  task.tensors.resize(2);
  task.tensors[1].role = Role::kOutput;
  const std::vector<Shaped> tensors = {{task.tensors.data(), {80000}, 80000, 320000},
                                       {&task.tensors[1], {80000}, 80000, 320000}};
  EXPECT_EQ(few_shapes(tensors)[0].period, 10000u);
  EXPECT_NEAR(reach_of(tensors, 8 / 80000.0), 8, 1e-9) << "element by element";
  EXPECT_NEAR(reach_of(tensors, 0.9), 72000, 1e-6) << "a running sum";
  EXPECT_EQ(reach_of(tensors, 0), 1);
}

}  // namespace
}  // namespace kernelpro
