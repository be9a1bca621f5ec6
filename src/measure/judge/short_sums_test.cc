// SPDX-License-Identifier: Apache-2.0
#include "measure/judge/short_sums.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/task/inputs.h"
#include "core/task/key.h"

namespace kernelpro {
namespace {

// c[b, i, j] = sum over k of a[b, i, k] b[b, k, j], plus d[b, i, j] times `faint`.
struct Products {
  std::int64_t batch = 32, rows = 32, columns = 48, length = 64;
  double faint = 0;
  Task task;
  std::vector<Shaped> tensors;
  std::vector<std::vector<float>> inputs;

  explicit Products(const Init& init = {}) {
    task.tensors.resize(4);
    task.tensors[3].role = Role::kOutput;
    for (Tensor& t : task.tensors) t.init = init;
    const std::vector<std::vector<std::int64_t>> shapes = {{batch, rows, length},
                                                           {batch, length, columns},
                                                           {batch, rows, columns},
                                                           {batch, rows, columns}};
    for (std::size_t i = 0; i < 4; ++i) {
      std::int64_t elements = 1;
      for (const std::int64_t extent : shapes[i]) elements *= extent;
      tensors.push_back({&task.tensors[i], shapes[i], elements, 4 * elements});
    }
    draw(1);
  }
  void draw(std::uint64_t key) {
    inputs.clear();
    for (int i = 0; i < 3; ++i) {
      const Shaped& t = tensors[static_cast<std::size_t>(i)];
      inputs.emplace_back(static_cast<std::size_t>(t.elements));
      draw_inputs(*t.tensor, i, key_of(key), 0, t.elements, inputs.back().data());
    }
  }
  std::vector<std::vector<float>> reshaped(const std::vector<kp::ShapeSpec>& specs) const {
    std::vector<std::vector<float>> all = inputs;
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (specs[i].shape == kp::kUnchanged) continue;
      std::vector<char> bytes(4 * all[i].size());
      std::memcpy(bytes.data(), all[i].data(), bytes.size());
      reshape(specs[i], kp::shape_key(3, static_cast<unsigned>(i)), &bytes);
      std::memcpy(all[i].data(), bytes.data(), bytes.size());
    }
    return all;
  }
  // `sum(sum, x, y)` adds a product.
  template <class Real, class Add>
  std::vector<Real> multiply(const std::vector<std::vector<float>>& in, const Add& add) const {
    std::vector<Real> c;
    for (std::int64_t b = 0; b < batch; ++b) {
      for (std::int64_t i = 0; i < rows; ++i) {
        for (std::int64_t j = 0; j < columns; ++j) {
          Real sum = static_cast<Real>(faint) * static_cast<Real>(in[2][c.size()]);
          for (std::int64_t k = 0; k < length; ++k) {
            const auto at_a = static_cast<std::size_t>((b * rows + i) * length + k);
            const auto at_b = static_cast<std::size_t>((b * length + k) * columns + j);
            sum = add(sum, in[0][at_a], in[1][at_b]);
          }
          c.push_back(sum);
        }
      }
    }
    return c;
  }
  std::vector<double> exact(const std::vector<std::vector<float>>& in) const {
    return multiply<double>(in, [](double sum, float x, float y) {
      return sum + static_cast<double>(x) * static_cast<double>(y);
    });
  }
  LookAt look() {
    return [this](const std::vector<kp::ShapeSpec>& specs)
               -> Result<std::optional<std::vector<OutputLook>>> {
      ++looks;
      const std::vector<double> c = exact(reshaped(specs));
      OutputLook found{0, c[0], c[0]};
      for (const double v : c) {
        found.rms += v * v / static_cast<double>(c.size());
        found.low = std::min(found.low, v);
        found.high = std::max(found.high, v);
      }
      found.rms = std::sqrt(found.rms);
      return std::optional(std::vector<OutputLook>{found});
    };
  }
  int looks = 0;
};

TEST(ShortSums, FindTheAxesThatAreAddedUp) {
  for (const double faint : {0.0, 1.0}) {
    Products task;
    task.faint = faint;
    const auto found = find_contractions(task.tensors, {0, 1}, task.look());
    ASSERT_TRUE(found);
    ASSERT_EQ(found->size(), 1u) << faint;
    EXPECT_EQ((*found)[0].a.tensor, 0);
    EXPECT_EQ((*found)[0].a.axis, 2);
    EXPECT_EQ((*found)[0].b.tensor, 1);
    EXPECT_EQ((*found)[0].b.axis, 1);
    EXPECT_LE(task.looks, 8);
  }
  Products task;
  EXPECT_TRUE(find_contractions(task.tensors, {0}, task.look())->empty());
  EXPECT_EQ(task.looks, 0);
}

float bf16(float value) { return kp::from_bfloat16(kp::to_bfloat16(value)); }

double norm_error(const std::vector<float>& got, const std::vector<double>& want) {
  double errors = 0, sizes = 0;
  for (std::size_t i = 0; i < want.size(); ++i) {
    const double d = static_cast<double>(got[i]) - want[i];
    errors += d * d;
    sizes += want[i] * want[i];
  }
  return std::sqrt(errors / sizes);
}

// Two bf16 parts, but fp32 for elements that stand out: no element does.
void check_short_sums(Products& task, DrawKind kind, std::uint64_t key) {
  task.draw(key);
  const auto in = task.reshaped(
      short_sum_shapes(task.tensors, {{{0, 2}, {1, 1}}}, kind, kp::mix64(key), false));
  const std::vector<double> want = task.exact(in);
  double mean = 0, most = 0;
  for (const float v : in[0]) {
    mean += std::fabs(static_cast<double>(v)) / static_cast<double>(in[0].size());
    most = std::max(most, std::fabs(static_cast<double>(v)));
  }
  EXPECT_LT(most, 12 * mean);
  EXPECT_EQ(in[2], task.inputs[2]);
  const auto plain =
      task.multiply<float>(in, [](float sum, float x, float y) { return sum + x * y; });
  EXPECT_LT(norm_error(plain, want), 3e-7);
  const auto parts = task.multiply<float>(in, [](float sum, float x, float y) {
    const float xh = bf16(x), yh = bf16(y), xl = bf16(x - xh), yl = bf16(y - yh);
    return sum + (xh * yh + (xh * yl + xl * yh));
  });
  EXPECT_GT(norm_error(parts, want), kind == DrawKind::kDimSums ? 1.8e-6 : 2.2e-6);
}

TEST(ShortSums, ShowProductsWhereNoElementStandsOut) {
  for (const Init& init : {Init{}, Init{Init::Kind::kUniform, 0, 1}}) {
    Products task(init);
    for (std::uint64_t key = 1; key <= 4; ++key) {
      for (const DrawKind kind : {DrawKind::kShortSums, DrawKind::kDimSums}) {
        check_short_sums(task, kind, key);
      }
    }
  }
}

}  // namespace
}  // namespace kernelpro
