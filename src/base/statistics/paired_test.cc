// SPDX-License-Identifier: Apache-2.0
// Against figures that SciPy and statsmodels computed (testdata/paired.py).
#include "base/statistics/paired.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <map>

#include "base/files.h"
#include "base/text.h"

namespace kernelpro {
namespace {

struct Line {
  std::string name;
  std::vector<std::vector<double>> parts;  // between colons, numbers
};

// Lines of one kind; the numbers before the first colon follow the name.
std::vector<Line> recorded(const std::string& kind) {
  const auto text =
      read_file(std::string(KERNELPRO_SOURCE_DIR) + "/src/base/statistics/testdata/paired.txt");
  std::vector<Line> found;
  if (!text) return found;
  for (const std::string& line : lines(*text)) {
    if (!line.starts_with(kind + " ")) continue;
    Line row;
    for (const std::string& part : split(line, ':')) {
      row.parts.emplace_back();
      std::vector<std::string> numbers = words(part);
      if (row.parts.size() == 1) {
        row.name = numbers.at(1);
        numbers.erase(numbers.begin(), numbers.begin() + 2);
      }
      for (const std::string& each : numbers) {
        row.parts.back().push_back(std::strtod(each.c_str(), nullptr));
      }
    }
    found.push_back(row);
  }
  return found;
}

TEST(Paired, SignedRankIsSciPys) {
  const std::vector<Line> rows = recorded("signed_rank");
  ASSERT_EQ(rows.size(), 15u);
  for (const Line& row : rows) {
    const std::vector<double>& expected = row.parts.at(0);
    const SignedRank got = signed_rank(row.parts.at(1));
    EXPECT_DOUBLE_EQ(std::min(got.plus, got.minus), expected.at(0)) << row.name;
    EXPECT_NEAR(got.p, expected.at(1), 1e-9 * expected.at(1)) << row.name;
    EXPECT_EQ(got.exact, expected.at(2) == 1) << row.name;
    EXPECT_NEAR(got.effect, expected.at(3), 1e-12) << row.name;
  }
}

TEST(Paired, NothingDiffers) {
  EXPECT_EQ(signed_rank({}).p, 1);
  const SignedRank none = signed_rank({0, 0, 0});
  EXPECT_EQ(none.p, 1);
  EXPECT_EQ(none.pairs, 0);
  EXPECT_EQ(none.effect, 0);
}

// Both sample randomly: the ends agree within the error of 200,000 and 50,000 resamples.
TEST(Paired, BootstrapIsSciPys) {
  const std::vector<Line> rows = recorded("bootstrap");
  ASSERT_EQ(rows.size(), 3u);
  for (const Line& row : rows) {
    const std::vector<double>& expected = row.parts.at(0);
    const Interval got = bootstrap_mean(row.parts.at(1), 3, 50000);
    const double open = 0.02 * (expected.at(2) - expected.at(0));
    EXPECT_NEAR(got.low, expected.at(0), open) << row.name;
    EXPECT_NEAR(got.mid, expected.at(1), 1e-12) << row.name;
    EXPECT_NEAR(got.high, expected.at(2), open) << row.name;
  }
}

TEST(Paired, BootstrapFollowsItsSeed) {
  const std::vector<double> values = {0.1, 0.5, -0.3, 1.2, 0.7};
  EXPECT_EQ(bootstrap_mean(values, 5).low, bootstrap_mean(values, 5).low);
  EXPECT_NE(bootstrap_mean(values, 5, 999).low, bootstrap_mean(values, 6, 999).low);
  const Interval constant = bootstrap_mean({2, 2, 2});
  EXPECT_EQ(constant.low, 2);
  EXPECT_EQ(constant.high, 2);
}

TEST(Paired, HolmIsStatsmodels) {
  const std::vector<Line> rows = recorded("holm");
  ASSERT_EQ(rows.size(), 4u);
  for (const Line& row : rows) {
    const std::vector<double> got = holm(row.parts.at(1));
    ASSERT_EQ(got.size(), row.parts.at(2).size());
    for (std::size_t i = 0; i < got.size(); ++i) {
      EXPECT_NEAR(got[i], row.parts.at(2)[i], 1e-12) << row.name;
    }
  }
  EXPECT_TRUE(holm({}).empty());
}

}  // namespace
}  // namespace kernelpro
