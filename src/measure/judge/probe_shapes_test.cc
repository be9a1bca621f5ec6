// SPDX-License-Identifier: Apache-2.0
#include "measure/judge/probe_shapes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <set>

#include "core/inputs.h"
#include "core/key.h"
#include "core/mismatch.h"

namespace kernelpro {
namespace {

constexpr std::int64_t kRows = 64, kColumns = 512, kElements = kRows * kColumns;

struct Drawn {
  explicit Drawn(DType dtype = DType::kFp32, const Init& init = {}) {
    task.tensors.resize(2);
    task.tensors[0].dtype = dtype;
    task.tensors[0].init = init;
    task.tensors[1].role = Role::kOutput;
    tensors = {{task.tensors.data(), {kRows, kColumns}, kElements, kElements * dtype_bytes(dtype)},
               {&task.tensors[1], {kRows}, kRows, 4 * kRows}};
    before = draw();
  }
  std::vector<char> draw() const {
    std::vector<char> data(static_cast<std::size_t>(tensors[0].bytes));
    draw_inputs(task.tensors[0], 0, key_of(7), 0, kElements, data.data());
    return data;
  }
  std::vector<double> shaped(DrawKind kind, std::uint64_t key, int linear = 0) const {
    std::vector<char> data = before;
    const std::uint64_t word = kp::subkey(key_of(key), kp::kShapeStream);
    reshape_input(tensors[0], probe_shapes(task, tensors, kind, word, linear), 0, kind, key_of(key),
                  &data);
    return values(data);
  }
  std::vector<double> values(const std::vector<char>& data) const {
    std::vector<double> all;
    for (std::int64_t i = 0; i < kElements; ++i) {
      all.push_back(element_as_double(task.tensors[0].dtype, data.data(), i));
    }
    return all;
  }
  Task task;
  std::vector<Shaped> tensors;
  std::vector<char> before;
};

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
  EXPECT_NEAR(full, kElements / 64.0, kElements / 256.0);

  std::map<double, int> often;
  for (const double v : drawn.shaped(DrawKind::kRepeated, 5)) ++often[v];
  const auto several =
      std::count_if(often.begin(), often.end(), [](const auto& each) { return each.second > 20; });
  EXPECT_GT(several, 40);
  EXPECT_GT(often.size(), kElements / 2u) << "most are as drawn: their sums err at random";

  const std::vector<double> top = drawn.shaped(DrawKind::kTop, 5);
  int near = 0, constant = 0;
  for (std::int64_t r = 0; r < kRows; ++r) {
    const auto row = top.begin() + r * kColumns;
    near += *std::min_element(row, row + kColumns) > 0.9 * high;
    constant += std::all_of(row, row + kColumns, [&](double v) { return v == *row; });
  }
  EXPECT_GT(near, kRows / 4);
  EXPECT_GT(constant, kRows / 16);

  const std::vector<double> rows = drawn.shaped(DrawKind::kRows, 5);
  int small = 0, rising = 0;
  for (std::int64_t r = 0; r < kRows; ++r) {
    const auto row = rows.begin() + r * kColumns;
    small += *std::max_element(row, row + kColumns) < high / 16;
    rising += std::is_sorted(row, row + kColumns);
  }
  EXPECT_GT(small, kRows / 16);
  EXPECT_GT(rising, kRows / 16);
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

TEST(ProbeShapes, IntegersReachTheEndsOfTheDeclaredRange) {
  const Drawn drawn(DType::kInt32, {Init::Kind::kIntegers, -3, 40000});
  const std::vector<double> ends = drawn.shaped(DrawKind::kEnds, 9);
  for (const double end : {-3.0, 40000.0}) {
    const auto count = std::count(ends.begin(), ends.end(), end);
    EXPECT_NEAR(static_cast<double>(count), kElements / 4.0, kElements / 20.0);
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
  EXPECT_EQ(kinds.count(kElements), 1u) << "all different";
}

TEST(ProbeShapes, RisingIntegersOfAModuleStay) {
  Drawn drawn(DType::kInt64, {Init::Kind::kIntegers, 0, 100});
  drawn.task.tensors[0].init = {Init::Kind::kModule, 0, 0};
  const std::vector<double> ends = drawn.shaped(DrawKind::kEnds, 9);
  EXPECT_GT(std::count(ends.begin(), ends.end(), 100), kElements / 5) << "the largest one drawn";
  for (std::int64_t i = 0; i < kElements; ++i) {
    const std::int64_t offset = i / 3;
    std::memcpy(drawn.before.data() + 8 * i, &offset, 8);
  }
  EXPECT_EQ(drawn.shaped(DrawKind::kEnds, 9), drawn.values(drawn.before));
}

// A module's matrix may be symmetric or triangular.
TEST(ProbeShapes, EqualElementsStayEqualAndZerosZero) {
  Drawn drawn;
  for (std::int64_t i = 0; i < kElements; ++i) {
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
  EXPECT_FALSE(linear([](double x) { return std::max(x, 0.0); }));
  EXPECT_FALSE(linear([](double x) { return x * x; }));
  EXPECT_FALSE(linear([](double x) { return std::fabs(x); }));
  EXPECT_FALSE(linear([](double x) { return std::tanh(x); }));
  EXPECT_FALSE(linear([](double) { return 0.0; }));
  EXPECT_FALSE(linear([](double x) { return std::exp(x); }));
}

}  // namespace
}  // namespace kernelpro
