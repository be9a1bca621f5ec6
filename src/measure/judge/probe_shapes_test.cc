// SPDX-License-Identifier: Apache-2.0
#include "measure/judge/probe_shapes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <set>

#include "core/task/key.h"
#include "measure/judge/probe_rows.h"
#include "measure/judge/testing.h"

namespace kernelpro {
namespace {

using testing::Drawn;
using testing::kDrawnColumns;
using testing::kDrawnElements;
using testing::kDrawnRows;

TEST(ProbeShapes, StayWithinTheDrawnRange) {
  for (const DType dtype : {DType::kFp32, DType::kFp16, DType::kBf16}) {
    const Drawn drawn(dtype, {Init::Kind::kUniform, 0.25, 1});
    const std::vector<double> given = drawn.values(drawn.before);
    const double high = *std::max_element(given.begin(), given.end());
    for (const DrawKind kind : {DrawKind::kTiny, DrawKind::kHeavy, DrawKind::kRepeated,
                                DrawKind::kRows, DrawKind::kTop}) {
      for (const std::uint64_t key : {1u, 2u, 3u}) {
        const std::vector<double> now = drawn.shaped(kind, key);
        EXPECT_NE(now, given);
        for (const double v : now) ASSERT_TRUE(v > 0 && v <= high) << v;
      }
    }
  }
}

TEST(ProbeShapes, AreWhatTheirNamesSay) {
  const Drawn drawn;
  const std::vector<double> given = drawn.values(drawn.before);
  const double high = *std::max_element(given.begin(), given.end());
  int full = 0;
  const std::vector<double> heavy = drawn.shaped(DrawKind::kHeavy, 5);
  for (std::size_t i = 0; i < given.size(); ++i) full += heavy[i] == given[i];
  EXPECT_NEAR(full, kDrawnElements / 64.0, kDrawnElements / 256.0);

  std::map<double, int> often;
  for (const double v : drawn.shaped(DrawKind::kRepeated, 5)) ++often[v];
  const auto several =
      std::count_if(often.begin(), often.end(), [](const auto& each) { return each.second > 20; });
  EXPECT_GT(several, 40);
  EXPECT_GT(often.size(), kDrawnElements / 2u) << "most are as drawn: their sums err at random";

  const std::vector<double> top = drawn.shaped(DrawKind::kTop, 5);
  int near = 0, constant = 0;
  for (std::int64_t r = 0; r < kDrawnRows; ++r) {
    const auto row = top.begin() + r * kDrawnColumns;
    near += *std::min_element(row, row + kDrawnColumns) > 0.9 * high;
    constant += std::all_of(row, row + kDrawnColumns, [&](double v) { return v == *row; });
  }
  EXPECT_GT(near, kDrawnRows / 4);
  EXPECT_GT(constant, kDrawnRows / 16);

  const std::vector<double> rows = drawn.shaped(DrawKind::kRows, 5);
  int small = 0, rising = 0;
  for (std::int64_t r = 0; r < kDrawnRows; ++r) {
    const auto row = rows.begin() + r * kDrawnColumns;
    small += *std::max_element(row, row + kDrawnColumns) < high / 16;
    rising += std::is_sorted(row, row + kDrawnColumns);
  }
  EXPECT_GT(small, kDrawnRows / 16);
  EXPECT_GT(rising, kDrawnRows / 16);
}

TEST(ProbeShapes, SparseKeepsAFewAndTheirDigits) {
  const Drawn drawn;
  const std::vector<double> given = drawn.values(drawn.before);
  bool zeros = false, negligible = false;
  for (std::uint64_t key = 0; key < 20; ++key) {
    const std::vector<double> now = drawn.shaped(DrawKind::kSparse, key);
    int kept = 0;
    for (std::size_t i = 0; i < now.size(); ++i) {
      zeros = zeros || now[i] == 0;
      if (std::fabs(now[i]) < 1e-10) {
        negligible = negligible || now[i] != 0;
        continue;
      }
      ++kept;
      int exponent = 0;
      EXPECT_EQ(std::fabs(std::frexp(now[i] / given[i], &exponent)), 0.5) << "a power of two";
    }
    EXPECT_GT(kept, 32);
    EXPECT_LT(kept, 128);
  }
  EXPECT_TRUE(zeros && negligible) << "zeros can be looked for";
  EXPECT_EQ(drawn.shaped(DrawKind::kSparse, 1, 1), given) << "another tensor is the linear one";
}

TEST(ProbeShapes, FewElementsCountBesideABackground) {
  const Drawn drawn(DType::kFp32, {Init::Kind::kUniform, -1, 1});
  const std::vector<double> given = drawn.values(drawn.before);
  ASSERT_EQ(probe_levels(DrawKind::kSparing), 3);
  for (const int level : {0, 1, 2}) {
    const std::vector<double> after = drawn.shaped(DrawKind::kSparing, 5, 0, level);
    std::set<double> others;
    std::int64_t kept = 0;
    for (std::size_t i = 0; i < after.size(); ++i) {
      if (after[i] == given[i]) ++kept;
      if (after[i] != given[i]) others.insert(after[i]);
    }
    // Eight for each of the results.
    EXPECT_NEAR(static_cast<double>(kept), 8 * kDrawnRows, 100);
    ASSERT_EQ(others.size(), 1u);
    EXPECT_NEAR(*others.begin(), level == 0 ? 0 : level == 1 ? -64 : 64, 0.1);
  }
  const std::vector<double> zeros = drawn.shaped(DrawKind::kZeros, 5);
  EXPECT_NEAR(static_cast<double>(std::count(zeros.begin(), zeros.end(), 0.0)),
              kDrawnElements / 2.0, 600);

  EXPECT_TRUE(few_decide({{3, -1, 5}}, {{52, -52, -52}})) << "a logarithm of a sum";
  EXPECT_TRUE(few_decide({{1, 0, 2}}, {{0, 0, 0}}));
  EXPECT_FALSE(few_decide({{1, 0, 2}}, {{0.5, 0, 2}})) << "half of it is background";
  EXPECT_FALSE(few_decide({{0, 0, 0}}, {{0, 0, 0}}));
}

// A module's matrix may be symmetric or triangular.
TEST(ProbeShapes, EqualElementsStayEqualAndZerosZero) {
  Drawn drawn;
  for (std::int64_t i = 0; i < kDrawnElements; ++i) {
    const float zero = 0;
    if (i % 5 == 0) std::memcpy(drawn.before.data() + 4 * i, &zero, 4);
    if (i % 5 == 1) std::memcpy(drawn.before.data() + 4 * i, drawn.before.data() + 4, 4);
  }
  for (const DrawKind kind :
       {DrawKind::kTiny, DrawKind::kHeavy, DrawKind::kRepeated, DrawKind::kSparse}) {
    const std::vector<double> now = drawn.shaped(kind, 3);
    for (std::size_t i = 0; i < now.size(); ++i) {
      if (i % 5 < 2) {
        ASSERT_EQ(now[i], i % 5 == 0 ? 0 : now[1]);
      }
    }
  }
}

TEST(ProbeShapes, ParametersGetLargeAndSmall) {
  Drawn drawn;
  drawn.task.tensors[0].role = Role::kParameter;
  const std::vector<double> given = drawn.values(drawn.before);
  const std::vector<double> large = drawn.shaped(DrawKind::kLargeParameters, 1);
  EXPECT_EQ(std::fabs(large[3] / given[3]), 8);
  EXPECT_EQ(drawn.shaped(DrawKind::kTinyParameters, 1)[3], given[3] / 1024);
}

std::vector<std::size_t> changed(const std::vector<double>& from, const std::vector<double>& to) {
  std::vector<std::size_t> at;
  for (std::size_t i = 0; i < from.size(); ++i) {
    if (from[i] != to[i]) at.push_back(i);
  }
  return at;
}

// A kernel that looks at some elements must not know the others by them.
TEST(ProbeShapes, FewElementsDiffer) {
  for (const double constant : {0.0, 1.0, -3.0}) {
    for (const DType dtype : {DType::kFp32, DType::kBf16}) {
      Drawn drawn(dtype, {Init::Kind::kConstant, constant, 0});
      const std::vector<double> given = drawn.values(drawn.before);
      std::set<std::size_t> places;
      for (std::uint64_t key = 0; key < 8; ++key) {
        drawn.task.tensors[0].role = key % 2 == 0 ? Role::kInput : Role::kParameter;
        const DrawKind kind = key % 2 == 0 ? DrawKind::kFewInputs : DrawKind::kFewParameters;
        const std::vector<double> now = drawn.shaped(kind, key);
        const std::vector<std::size_t> at = changed(given, now);
        EXPECT_EQ(at.size(), 3u);
        places.insert(at.begin(), at.end());
        for (const std::size_t i : at) {
          const double by =
              std::fabs(now[i] - constant) / (constant == 0 ? 1 : std::fabs(constant));
          EXPECT_TRUE(by > 0.12 && by < 0.26) << by;
        }
      }
      EXPECT_GT(places.size(), 16u) << "they are elsewhere each time";
    }
  }
  Drawn drawn;
  const std::vector<double> given = drawn.values(drawn.before);
  int most = 0;
  for (std::uint64_t key = 0; key < 8; ++key) {
    drawn.task.tensors[0].role = Role::kInput;
    const std::vector<double> now = drawn.shaped(DrawKind::kFewInputs, key);
    for (const std::size_t i : changed(given, now))
      EXPECT_EQ(now[i], 64 * given[i]) << "both signs";
    most = std::max(most, static_cast<int>(changed(given, now).size()));
    EXPECT_LT(changed(given, now).size(), 30u);
  }
  EXPECT_GT(most, 2);
}

// Whoever samples a row, or the tensor, misses most of them.
TEST(ProbeShapes, RowsHaveOneOutlierAtASecretPlace) {
  for (const Init& init : {Init{}, Init{Init::Kind::kUniform, 0, 1}}) {
    const Drawn drawn(DType::kFp32, init);
    const std::vector<double> given = drawn.values(drawn.before);
    std::set<std::int64_t> places;
    int negative = 0, large = 0, all = 0;
    for (std::uint64_t key = 1; key <= 8; ++key) {
      const std::vector<double> now = drawn.shaped(DrawKind::kOutliers, key);
      std::set<std::int64_t> rows;
      for (const std::size_t i : changed(given, now)) {
        const auto at = static_cast<std::int64_t>(i);
        EXPECT_TRUE(rows.insert(at / kDrawnColumns).second) << "two in row " << at / kDrawnColumns;
        places.insert(at % kDrawnColumns);
        negative += now[i] < 0;
        large += std::fabs(now[i]) > 3.9 * (init.kind == Init::Kind::kUniform ? 1 : 4);
        ++all;
      }
    }
    EXPECT_GT(all, kDrawnRows);
    EXPECT_GT(places.size(), static_cast<std::size_t>(all) / 2);
    EXPECT_NEAR(negative, all / 2.0, all / 4.0);
    EXPECT_GT(large, all / 4);
  }
}

TEST(ProbeShapes, ClustersOfLargeElementsFallIntoAnyPart) {
  const Drawn drawn;
  const std::vector<double> given = drawn.values(drawn.before);
  const double high = *std::max_element(given.begin(), given.end());
  // Rows whose eight largest elements are all in one of 64 parts, by either way to take parts.
  int periodic = 0, blocked = 0;
  for (std::uint64_t key = 1; key <= 20; ++key) {
    const std::vector<double> now = drawn.shaped(DrawKind::kTop, key);
    for (std::int64_t row = 0; row < kDrawnRows; ++row) {
      std::vector<std::int64_t> near;
      for (std::int64_t i = 0; i < kDrawnColumns; ++i) {
        if (now[static_cast<std::size_t>(row * kDrawnColumns + i)] > high - 0.06) near.push_back(i);
      }
      if (near.size() < 4 || near.size() > 64) continue;
      periodic += std::ranges::all_of(near, [&](auto i) { return i % 64 == near[0] % 64; });
      blocked += near.back() - near.front() < 64;
    }
  }
  EXPECT_GT(periodic, 4);
  EXPECT_GT(blocked, 4);
}

TEST(ProbeShapes, LargeOnesHaveLevels) {
  const Drawn drawn;
  const std::vector<double> given = drawn.values(drawn.before);
  for (const DrawKind kind : {DrawKind::kFewInputs, DrawKind::kOutliers}) {
    // Outliers that hide all others come before.
    const int first = kind == DrawKind::kOutliers ? 1 : 0;
    double before = INFINITY;
    for (const int level : {first, first + 1, first + 2}) {
      double most = 0;
      for (const double v : drawn.shaped(kind, 3, 0, level)) most = std::max(most, std::fabs(v));
      EXPECT_LT(most, before);
      before = most;
    }
    for (const int level : {first + 3, first + 4}) {
      const std::vector<double> now = drawn.shaped(kind, 3, 0, level);
      for (const std::size_t i : changed(given, now)) {
        EXPECT_EQ(now[i] < 0, level == first + 3) << i;
      }
    }
  }
  // Drawn 64 times as large.
  EXPECT_EQ(drawn.shaped(DrawKind::kScaled, 3), given);
  const std::vector<double> negative = drawn.shaped(DrawKind::kScaled, 3, 0, 1);
  const std::vector<double> less = drawn.shaped(DrawKind::kScaled, 3, 0, 3);
  for (std::size_t i = 0; i < given.size(); ++i) {
    ASSERT_EQ(negative[i], -std::fabs(given[i]));
    ASSERT_EQ(less[i], given[i] / 8);
  }
  EXPECT_EQ(probe_levels(DrawKind::kCentred), 1);
}

TEST(ProbeShapes, OneOfSeveralInputsGetsLarge) {
  Task task;
  task.tensors.resize(4);
  task.tensors[2].init = {Init::Kind::kConstant, 1, 1};
  task.tensors[3].role = Role::kOutput;
  std::vector<Shaped> tensors;
  for (const Tensor& t : task.tensors) tensors.push_back({&t, {8}, 8, 32});
  EXPECT_EQ(named_candidates(DrawKind::kLone, task), (std::vector<int>{0, 1}));
  for (const int which : {0, 1}) {
    const std::uint64_t word =
        kp::subkey(naming_key(DrawKind::kLone, task, which), kp::kShapeStream);
    const auto specs = probe_shapes(task, tensors, DrawKind::kLone, word);
    ASSERT_EQ(specs.size(), 4u);
    for (int i = 0; i < 4; ++i) {
      EXPECT_EQ(specs[static_cast<std::size_t>(i)].shape != kp::kUnchanged, i == which) << i;
    }
    EXPECT_EQ(specs[static_cast<std::size_t>(which)].factor, 0x1p20f);
  }
  task.tensors[1].init = task.tensors[2].init;
  EXPECT_TRUE(named_candidates(DrawKind::kLone, task).empty());
  EXPECT_FALSE(shape_applies(DrawKind::kLone, task));
}

TEST(ProbeShapes, WhatMayBeAddedToResultsGetsFaint) {
  // c = z + a b, and a bias
  Task task;
  task.tensors.resize(5);
  const std::vector<std::string> shapes[] = {{"M", "K"}, {"K", "N"}, {"M", "N"}, {"N"}, {"M", "N"}};
  for (std::size_t i = 0; i < 5; ++i) task.tensors[i].shape = shapes[i];
  task.tensors[4].role = Role::kOutput;
  EXPECT_EQ(named_candidates(DrawKind::kFaint, task), (std::vector<int>{2, 3}));
  EXPECT_TRUE(shape_applies(DrawKind::kFaint, task));
  std::vector<Shaped> tensors;
  for (const Tensor& t : task.tensors) tensors.push_back({&t, {8}, 8, 32});
  const std::uint64_t word = kp::subkey(naming_key(DrawKind::kFaint, task, 2), kp::kShapeStream);
  const auto specs = probe_shapes(task, tensors, DrawKind::kFaint, word);
  ASSERT_EQ(specs.size(), 5u);
  EXPECT_EQ(specs[0].shape, kp::kUnchanged);
  EXPECT_LE(specs[2].factor, 0x1p-26f);
  EXPECT_GE(specs[2].factor, 0x1p-37f);
  task.cases.resize(1);
  task.cases[0].shapes = {{8, 4}, {4, 6}, {8, 1, 6}, {3}, {8, 6}};  // a module's
  EXPECT_EQ(named_candidates(DrawKind::kFaint, task), (std::vector<int>{2}));
}

// In each draw: none may be left with no element that shows anything.
TEST(ProbeShapes, AsManyDifferInEachDraw) {
  const Drawn drawn(DType::kFp32, {Init::Kind::kUniform, 1, 2});
  const std::vector<double> given = drawn.values(drawn.before);
  std::set<std::size_t> places;
  for (std::uint64_t key = 0; key < 64; ++key) {
    const std::vector<double> now = drawn.shaped(DrawKind::kFewInputs, key);
    const std::vector<std::size_t> at = changed(given, now);
    const auto turned =
        std::count_if(at.begin(), at.end(), [&](std::size_t i) { return now[i] < 0; });
    EXPECT_TRUE(at.size() == 8 || at.size() == 9) << at.size();
    EXPECT_EQ(turned, 4);
    places.insert(at.begin(), at.end());
  }
  EXPECT_GT(places.size(), 200u) << "they are elsewhere each time";
}

// A matrix of a module may be symmetric, and a kernel may count on it.
TEST(ProbeShapes, EqualElementsOfAModulesSquareMatrixStayEqual) {
  kp::ShapeSpec spec{};
  spec.shape = kp::kFew;
  spec.depth = 1;
  spec.period = 8;
  spec.factor = -64;
  spec.high = 2;
  spec.count = 4096;
  int few = 0;
  for (unsigned i = 0; i < 64; ++i) {
    const float value = 1 + static_cast<float>(i) / 64;
    const float now = kp::reshaped_float(spec, 5, i, value);
    EXPECT_EQ(kp::reshaped_float(spec, 5, 4095 - i, value), now);
    few += now != value ? 1 : 0;
  }
  EXPECT_GT(few, 0);
  EXPECT_LT(few, 32);
}

TEST(ProbeShapes, FewOfOneSignChangeIt) {
  const Drawn drawn(DType::kFp32, {Init::Kind::kUniform, 0, 1});
  const std::vector<double> given = drawn.values(drawn.before);
  std::set<double> factors;
  for (std::uint64_t key = 0; key < 16; ++key) {
    const std::vector<double> now = drawn.shaped(DrawKind::kFewInputs, key);
    for (const std::size_t i : changed(given, now)) factors.insert(now[i] / given[i]);
  }
  EXPECT_EQ(factors, (std::set<double>{-1, 64}));
  factors.clear();
  const std::vector<double> once = drawn.shaped(DrawKind::kFewInputs, 4);
  for (const std::size_t i : changed(given, once)) factors.insert(once[i] / given[i]);
  EXPECT_EQ(factors.size(), 2u) << "of either kind in one draw";
}

TEST(ProbeShapes, EachKindSurvivesTheJourneyToTheJudge) {
  for (const Init& init :
       {Init{}, Init{Init::Kind::kIntegers, 0, 9}, Init{Init::Kind::kConstant, 1, 0},
        Init{Init::Kind::kBernoulli, 0.5, 0}}) {
    Drawn drawn(DType::kFp32, init);
    for (const Role role : {Role::kInput, Role::kParameter}) {
      drawn.task.tensors[0].role = role;
      for (const ProbeRow& row : probe_rows()) {
        for (int level = 0; level < row.levels; ++level) {
          const std::string json = shape_specs_to_json(
              probe_shapes(drawn.task, drawn.tensors, row.kind, 4, 0, false, level));
          EXPECT_TRUE(shape_specs_from_json(json)) << row.words << ": " << json;
        }
      }
    }
  }
}

TEST(ProbeShapes, SurviveTheJourneyToTheJudge) {
  const Drawn drawn;
  const auto specs = probe_shapes(drawn.task, drawn.tensors, DrawKind::kSparse, 4, 0);
  const auto read = shape_specs_from_json(shape_specs_to_json(specs));
  ASSERT_TRUE(read);
  ASSERT_EQ(read->size(), 2u);
  EXPECT_EQ(shape_specs_to_json(*read), shape_specs_to_json(specs));
  EXPECT_EQ((*read)[0].period, specs[0].period);
  EXPECT_FALSE(shape_specs_from_json("[{\"shape\": 99}]"));
  EXPECT_FALSE(shape_specs_from_json("{}"));
}

std::vector<OutputLook> looks(double (*f)(double), float factor) {
  OutputLook look{0, INFINITY, -INFINITY};
  for (int i = 1; i <= 100; ++i) {
    const double y = f(static_cast<double>(factor) * std::sin(i));
    look.rms += y * y / 100;
    look.low = std::min(look.low, y);
    look.high = std::max(look.high, y);
  }
  look.rms = std::sqrt(look.rms);
  return {look};
}

TEST(ProbeShapes, LinearIsWhatScalesAndChangesSign) {
  const auto linear = [](double (*f)(double)) {
    return is_linear(looks(f, kLinearFactors[0]), looks(f, kLinearFactors[1]),
                     looks(f, kLinearFactors[2]));
  };
  EXPECT_TRUE(linear([](double x) { return 3 * x; }));
  EXPECT_TRUE(linear([](double x) { return 5 - x / 7; }));  // an addend vanishes beside large ones
  EXPECT_TRUE(linear([](double x) { return 1e6 + x / 100; }));
  EXPECT_FALSE(linear([](double x) { return std::max(x, 0.0); }));
  EXPECT_FALSE(linear([](double x) { return x * x; }));
  EXPECT_FALSE(linear([](double x) { return std::fabs(x); }));
  EXPECT_FALSE(linear([](double x) { return std::tanh(x); }));
  EXPECT_FALSE(linear([](double) { return 0.0; }));
  EXPECT_FALSE(linear([](double x) { return std::exp(x); }));
}

TEST(ProbeShapes, AddendsAreFoundAndOutgrown) {
  const auto addend = [](double (*f)(double)) {
    return has_addend(looks(f, kLinearFactors[0]), looks(f, kLinearFactors[3]));
  };
  EXPECT_FALSE(addend([](double x) { return 3 * x; }));
  EXPECT_FALSE(addend([](double x) { return 3 * x + 1e-4; }));
  EXPECT_TRUE(addend([](double x) { return 3 * x + 1; }));
  EXPECT_TRUE(addend([](double x) { return 1000 - x; }));
  const Drawn drawn;
  for (const std::uint64_t word : {1u, 2u, 3u, 4u}) {
    EXPECT_GT(probe_shapes(drawn.task, drawn.tensors, DrawKind::kSparse, word, 0, true)[0].factor,
              1e6f);
    EXPECT_LT(probe_shapes(drawn.task, drawn.tensors, DrawKind::kSparse, word, 0)[0].factor, 257);
  }
}

TEST(ProbeShapes, FactorsGrowWithOthers) {
  // c = z + a b
  const auto rms = [](double a, double b, double z) {
    return std::vector<OutputLook>{{std::hypot(a * b, z), 0, 0}};
  };
  const double f = kLinearFactors[0], other = kOtherFactor;
  EXPECT_TRUE(is_factor(rms(f, 1, 1000), rms(f, other, 1000 * other)));
  EXPECT_FALSE(is_factor(rms(1, 1, 1000 * f), rms(other, other, 1000 * f)));
  const Drawn drawn;
  const auto specs = power_shapes(drawn.tensors, 0, 4, kOtherFactor, true);
  EXPECT_EQ(specs[0].factor, 4);
  EXPECT_EQ(specs[1].shape, kp::kUnchanged) << "an output";
}

}  // namespace
}  // namespace kernelpro
