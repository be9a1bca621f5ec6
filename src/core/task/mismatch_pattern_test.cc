// SPDX-License-Identifier: Apache-2.0
// Planted mistakes and their descriptions.
#include "core/task/mismatch_pattern.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "base/text.h"
#include "core/task/inputs.h"
#include "core/task/key.h"
#include "core/task/mismatch.h"

namespace kernelpro {
namespace {

using Shape = std::vector<std::int64_t>;

// The description of an output of this shape after `spoil` changed the correct values.
std::string said(const Shape& shape, const std::function<void(std::vector<float>&)>& spoil,
                 double tolerance = 1e-4) {
  Tensor tensor;
  tensor.role = Role::kOutput;
  Shaped shaped;
  shaped.tensor = &tensor;
  shaped.shape = shape;
  shaped.elements = 1;
  for (const std::int64_t dim : shape) shaped.elements *= dim;
  shaped.bytes = shaped.elements * 4;
  Tensor drawn;  // standard normal
  std::vector<float> out(static_cast<std::size_t>(shaped.elements));
  draw_inputs(drawn, 0, key_of(7), 0, shaped.elements, out.data());
  const std::vector<double> reference(out.begin(), out.end());
  Rule rule;
  rule.tolerance = tolerance;
  const Expected expected = make_expected(shaped, reference.data(), rule);
  spoil(out);
  const Comparison comparison = compare_output(shaped, out.data(), expected);
  EXPECT_FALSE(comparison.ok());
  if (comparison.ok()) return "";
  return describe_mismatch(shaped, out.data(), expected, comparison, {});
}

// Adds noise to the elements for which `where(row, column)` holds.
std::string said_where(std::int64_t rows, std::int64_t columns,
                       const std::function<bool(std::int64_t, std::int64_t)>& where) {
  return said({rows, columns}, [&](std::vector<float>& out) {
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t c = 0; c < columns; ++c) {
        float& v = out[static_cast<std::size_t>(r * columns + c)];
        if (where(r, c)) v += 1.0f + static_cast<float>(kp::mix64(r * 977 + c) % 1000) * 0.01f;
      }
    }
  });
}

#define EXPECT_SAID(text, words) EXPECT_TRUE(contains(text, words)) << text

TEST(Pattern, Places) {
  EXPECT_SAID(said_where(64, 128, [](auto r, auto) { return r < 3; }),
              "only the first 3 rows of 64");
  EXPECT_SAID(said_where(64, 128, [](auto r, auto) { return r >= 60; }),
              "only the last 4 rows of 64");
  EXPECT_SAID(said_where(64, 128, [](auto r, auto) { return r == 5; }), "only in row 5 of 64");
  EXPECT_SAID(said_where(64, 128, [](auto r, auto) { return r == 5 || r == 6; }),
              "only rows 5 to 6 of 64");
  EXPECT_SAID(said_where(64, 128, [](auto, auto c) { return c == 9; }), "only in column 9 of 128");
  EXPECT_SAID(said_where(64, 130, [](auto, auto c) { return c >= 128; }),
              "only in the tail of rows, from column 128 of 130");
  EXPECT_SAID(
      said_where(64, 128, [](auto r, auto c) { return r >= 16 && r < 32 && c >= 32 && c < 64; }),
      "only rows 16 to 31 and columns 32 to 63: one tile of 16 x 32");
  EXPECT_SAID(said_where(64, 128, [](auto, auto c) { return c % 8 == 3; }), "every 8th element");
  EXPECT_SAID(said_where(64, 128, [](auto r, auto c) { return r == 2 && c >= 32 && c < 64; }),
              "one run of 32 elements, those of one warp");
  EXPECT_SAID(said_where(64, 128, [](auto r, auto c) { return (r * 7 + c * 13) % 311 == 1; }),
              "scattered");
  EXPECT_SAID(said_where(64, 128, [](auto r, auto c) { return r > 3 && c % 32 == 31; }),
              "every 32nd element");
}

TEST(Pattern, PlacesInOtherShapes) {
  EXPECT_SAID(said({1000},
                   [](auto& out) {
                     for (int i = 992; i < 1000; ++i) out[i] += 3;
                   }),
              "only the last 8 elements of the tensor, from element 992, a multiple of 32");
  EXPECT_SAID(said({4096 + 5},
                   [](auto& out) {
                     for (int i = 4096; i < 4101; ++i) out[i] += 3;
                   }),
              "from element 4096, a multiple of 4096");
  EXPECT_SAID(said({8, 16, 10, 10},
                   [](auto& out) {
                     for (std::size_t i = 0; i < out.size(); ++i) out[i] += i / 100 % 16 == 15;
                   }),
              "only where coordinate 1 is 15 of 16");
  EXPECT_SAID(said({}, [](auto& out) { out[0] += 1; }), "1 of 1 element is wrong, first at [0]");
}

TEST(Pattern, Values) {
  const Shape shape = {64, 96};
  EXPECT_SAID(said(shape,
                   [](auto& out) {
                     for (float& v : out) v = 0;
                   }),
              "all of them are 0");
  EXPECT_SAID(said(shape,
                   [](auto& out) {
                     for (float& v : out) v = 2.5f;
                   }),
              "all of them are 2.5");
  EXPECT_SAID(said(shape,
                   [](auto& out) {
                     for (float& v : out) v *= 0.5f;
                   }),
              "each is 0.5 times what was expected");
  EXPECT_SAID(said(shape,
                   [](auto& out) {
                     for (float& v : out) v = -v;
                   }),
              "each has the wrong sign");
  EXPECT_SAID(said(shape,
                   [](auto& out) {
                     for (float& v : out) v -= 3;
                   }),
              "each is too small by 3");
  EXPECT_SAID(said(shape,
                   [](auto& out) {
                     for (float& v : out) v /= 0.0f;
                   }),
              "all of them are infinite");
  EXPECT_SAID(said(shape,
                   [](auto& out) {
                     for (float& v : out) v = v < 0 ? 0.01f * v * v : v;
                   }),
              "all where a negative value was expected");
  EXPECT_SAID(said(shape,
                   [](auto& out) {
                     for (float& v : out) v = NAN;
                   }),
              "all of them are NaN");
}

TEST(Pattern, RightValuesInWrongPlaces) {
  const auto transpose = [](std::int64_t rows, std::int64_t columns) {
    return [=](std::vector<float>& out) {
      const std::vector<float> right = out;
      for (std::int64_t r = 0; r < rows; ++r) {
        for (std::int64_t c = 0; c < columns; ++c) {
          out[static_cast<std::size_t>(c * rows + r)] =
              right[static_cast<std::size_t>(r * columns + c)];
        }
      }
    };
  };
  EXPECT_SAID(said({64, 64}, transpose(64, 64)), "they are the transpose");
  EXPECT_SAID(said({48, 20}, transpose(48, 20)), "they are the transpose");
  EXPECT_SAID(said({3000},
                   [](auto& out) {
                     out.erase(out.begin());
                     out.push_back(9);
                   }),
              "they are the values of the next element");
  EXPECT_SAID(said({30, 70},
                   [](auto& out) {
                     out.insert(out.begin(), 70, 5.0f);
                     out.resize(30 * 70);
                   }),
              "they are the values of the previous row");
}

TEST(Pattern, LessPreciseArithmetic) {
  const std::string text = said({64, 96}, [](auto& out) {
    for (float& v : out) v = kp::from_bfloat16(kp::to_bfloat16(v));
  });
  EXPECT_SAID(text, "all errors are small");
  EXPECT_FALSE(contains(text, "times what was expected")) << text;
  const std::string tf32 = said({64, 96}, [](auto& out) {
    for (float& v : out) v = kp::bits_float(kp::float_bits(v) & ~0x1fffu);
  });
  EXPECT_SAID(tf32, "all errors are small");
}

TEST(Pattern, NoPatternIsNamedWhereThereIsNone) {
  // Values unrelated to the expected ones.
  const std::string text = said({64, 96}, [](auto& out) {
    Tensor other;
    draw_inputs(other, 3, key_of(99), 0, static_cast<std::int64_t>(out.size()), out.data());
  });
  for (const char* words : {"times", "too ", "transpose", "values of the", "all of them are"}) {
    EXPECT_FALSE(contains(text, words)) << text;
  }
}

}  // namespace
}  // namespace kernelpro
