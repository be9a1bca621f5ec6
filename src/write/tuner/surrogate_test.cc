// SPDX-License-Identifier: Apache-2.0
#include "write/tuner/surrogate.h"

#include <gtest/gtest.h>

#include <cmath>

namespace kernelpro {
namespace {

// Two independent knobs, one without effect.
double truth(const Setting& s) { return 0.3 * s[0]; }

Surrogate learned() {
  std::vector<Setting> settings;
  std::vector<double> values;
  for (const Setting& s : {Setting{0, 0}, Setting{1, 3}, Setting{2, 1}, Setting{3, 2},
                           Setting{0, 3}, Setting{3, 0}, Setting{1, 1}}) {
    settings.push_back(s);
    values.push_back(truth(s));
  }
  return Surrogate({{4}, {4}}, settings, values, SurrogatePrior());
}

TEST(Surrogate, KnowsWhatItSawAndIsUnsureOfTheRest) {
  const Surrogate surrogate = learned();
  EXPECT_NEAR(surrogate.at({2, 1}).mean, 0.6, 0.05);
  EXPECT_LT(surrogate.at({2, 1}).sd, surrogate.at({2, 3}).sd);
  // Never seen.
  for (const Setting& s : {Setting{2, 3}, Setting{0, 1}, Setting{3, 3}}) {
    EXPECT_NEAR(surrogate.at(s).mean, truth(s), 0.15);
  }
}

TEST(Surrogate, OneValueIsTheLevelAndDistanceMakesUnsure) {
  const Surrogate surrogate({{4}, {2, false}}, {{0, 0}}, {1.0}, SurrogatePrior());
  EXPECT_NEAR(surrogate.at({3, 1}).mean, 1, 1e-9);
  EXPECT_LT(surrogate.at({1, 0}).sd, surrogate.at({3, 0}).sd);
  EXPECT_LT(surrogate.at({3, 0}).sd, surrogate.at({3, 1}).sd);
}

TEST(Surrogate, NamesAreEquallyFarApart) {
  const Surrogate surrogate({{5, false}}, {{0}}, {1.0}, SurrogatePrior());
  EXPECT_DOUBLE_EQ(surrogate.at({1}).sd, surrogate.at({4}).sd);
}

TEST(Surrogate, ManyOfTheSameAreNoTrap) {
  const std::vector<Setting> same(20, Setting{1, 1});
  const Surrogate surrogate({{3}, {3}}, same, std::vector<double>(20, 2.0), SurrogatePrior());
  EXPECT_NEAR(surrogate.at({1, 1}).mean, 2, 1e-6);
  EXPECT_TRUE(std::isfinite(surrogate.at({0, 2}).sd));
}

}  // namespace
}  // namespace kernelpro
