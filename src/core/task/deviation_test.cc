// SPDX-License-Identifier: Apache-2.0
#include "core/task/deviation.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/task/inputs.h"
#include "core/task/key.h"

namespace kernelpro {
namespace {

constexpr int kRows = 20, kColumns = 30;

double random_sign(std::uint64_t i) { return kp::mix64(i) % 2 == 0 ? 1 : -1; }

class Deviations : public ::testing::Test {
 protected:
  void SetUp() override {
    task_.tensors.resize(1);
    for (int i = 0; i < kRows * kColumns; ++i) values_.push_back(1 + i % 7);
  }
  Shaped output(DType dtype = DType::kFp32) {
    task_.tensors[0].dtype = dtype;
    return {task_.tensors.data(),
            {kRows, kColumns},
            kRows * kColumns,
            kRows * kColumns * dtype_bytes(dtype)};
  }
  Expected expected() { return make_expected(output(), values_.data(), {}); }

  void expect_means_by_definition(const std::vector<std::int64_t>& shape) {
    std::size_t n = 1;
    for (const std::int64_t length : shape) n *= static_cast<std::size_t>(length);
    std::vector<float> got(n);
    values_.assign(n, 0);
    for (std::size_t i = 0; i < n; ++i) {
      values_[i] = 1 + static_cast<double>(kp::mix64(i) >> 40) * 0x1p-24;
      got[i] = static_cast<float>(values_[i] + 1e-4 * random_sign(i / 80) + 1e-4 * (i % 80 == 3));
    }
    task_.tensors.resize(1);
    const Shaped output{task_.tensors.data(), shape, static_cast<std::int64_t>(n),
                        static_cast<std::int64_t>(4 * n)};
    const Expected expected = make_expected(output, values_.data(), {});
    const Deviation single = deviation(output, got.data(), expected);
    const Deviation twice = deviation({got.begin(), got.end()}, expected, shape);
    const std::vector<MeanAxis> axes = mean_axes(shape);
    ASSERT_EQ(single.means.size(), axes.size());
    double rms = 0;
    for (const double value : values_) rms += value * value / static_cast<double>(n);
    rms = std::sqrt(rms);
    for (std::size_t a = 0; a < axes.size(); ++a) {
      const MeanAxis& axis = axes[a];
      std::vector<double> sums(static_cast<std::size_t>(axis.groups()));
      for (std::size_t i = 0; i < n; ++i) {
        const std::size_t inner = static_cast<std::size_t>(axis.inner);
        const std::size_t length = static_cast<std::size_t>(axis.length);
        const std::size_t k = i / inner % length;
        sums[axis.across ? k : i / inner / length * inner + i % inner] +=
            got[i] - values_[i] - single.common * values_[i];
      }
      double squares = 0;
      for (const double sum : sums) squares += sum * sum;
      const double mean = std::sqrt(squares / static_cast<double>(sums.size())) /
                          static_cast<double>(axis.averaged()) / rms;
      EXPECT_NEAR(single.means[a], mean, 1e-9 * mean + 1e-15) << a;
      EXPECT_NEAR(twice.means[a], mean, 1e-9 * mean + 1e-15) << a;
    }
  }

  Task task_;
  std::vector<double> values_;
};

TEST_F(Deviations, ACommonFactorIsNoMeanError) {
  std::vector<double> got = values_;
  for (double& value : got) value *= 1 + 1e-5;
  const Deviation found = deviation(got, expected());
  EXPECT_NEAR(found.norm, 1e-5, 1e-10);
  EXPECT_NEAR(found.common, 1e-5, 1e-10);
  for (const double mean : deviation(got, expected(), {kRows, kColumns}).means) {
    EXPECT_LT(mean, 1e-12);
  }
  EXPECT_EQ(found.changed, 0);
}

TEST_F(Deviations, MeansShowWhatRowsHaveInCommon) {
  std::vector<double> rows = values_, single = values_;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    rows[i] += 1e-5 * random_sign(i / kColumns);
    single[i] += 1e-5 * random_sign(i + 1000);
  }
  const Deviation common = deviation(rows, expected(), {kRows, kColumns});
  const Deviation apart = deviation(single, expected(), {kRows, kColumns});
  EXPECT_NEAR(common.norm, apart.norm, 1e-12);
  ASSERT_EQ(common.means.size(), 2u);
  EXPECT_LT(common.means[0], 0.6 * common.norm) << "along columns they cancel";
  EXPECT_NEAR(common.means[1], common.norm, 0.2 * common.norm);
  EXPECT_LT(apart.means[1], 0.4 * apart.norm);
}

// On several threads, in rows as long as can be, and from either type: as by the definition.
TEST_F(Deviations, MeansOfLargeTensorsAreThoseOfTheirGroups) {
  for (const std::vector<std::int64_t>& shape :
       {std::vector<std::int64_t>{64, 128, 80}, {16, 64, 1024}, {640, 1024}}) {
    expect_means_by_definition(shape);
  }
}

TEST_F(Deviations, AxesNeedGroupsAndElements) {
  EXPECT_EQ(mean_axes({64, 64}).size(), 2u);
  EXPECT_TRUE(mean_axes({4096}).empty());
  EXPECT_TRUE(mean_axes({7, 4096}).empty()) << "few rows; columns of few elements";
  EXPECT_EQ(mean_axes({12, 4096}).size(), 1u) << "rows alone";
  const std::vector<MeanAxis> batch = mean_axes({4, 32, 64});
  ASSERT_EQ(batch.size(), 4u);
  for (const MeanAxis& axis : batch) EXPECT_EQ(axis.groups() * axis.averaged(), 4 * 32 * 64);
}

TEST_F(Deviations, WhatRoundingToHalvesAccountsForIsNoError) {
  for (const DType dtype : {DType::kFp16, DType::kBf16}) {
    const bool half = dtype == DType::kFp16;
    for (std::size_t i = 0; i < values_.size(); ++i) {
      values_[i] = random_sign(i) * (1 + 3 * static_cast<double>(kp::mix64(i) >> 40) * 0x1p-24);
    }
    const auto stored = [&](double by) {
      std::vector<unsigned short> bits;
      for (const double value : values_) {
        const auto single = static_cast<float>(value * by);
        bits.push_back(half ? kp::to_half(single) : kp::to_bfloat16(single));
      }
      return bits;
    };
    EXPECT_LT(deviation(output(dtype), stored(1).data(), expected()).norm, 1e-7);
    const double ulp = half ? 0x1p-10 : 0x1p-7;
    const Deviation coarse = deviation(output(dtype), stored(1 + ulp / 4).data(), expected());
    EXPECT_GT(coarse.norm, 0.02 * ulp);
    EXPECT_LT(coarse.worst, 0.3 * ulp) << "never more than what there was before rounding";
  }
  const unsigned short overflown = 0x7c00;
  task_.tensors[0].dtype = DType::kFp16;
  const Shaped one{task_.tensors.data(), {1}, 1, 2};
  const double large = 65519;
  EXPECT_EQ(deviation(one, &overflown, make_expected(one, &large, {})).norm, 0) << "not finite";
}

TEST_F(Deviations, FewLargeElementsDoNotHideOthers) {
  values_[7] = 1e6;
  std::vector<double> got = values_;
  for (std::size_t i = 0; i < got.size(); ++i) got[i] += i == 7 ? 0 : 1e-3;
  const Deviation found = deviation(got, make_expected(output(), values_.data(), {}));
  EXPECT_LT(found.norm, 1e-7);
  EXPECT_GT(found.relative, 1e-5);
}

}  // namespace
}  // namespace kernelpro
