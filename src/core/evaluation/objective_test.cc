// SPDX-License-Identifier: Apache-2.0
#include "core/evaluation/objective.h"

#include <gtest/gtest.h>

#include <set>

#include "base/files.h"
#include "base/text.h"

namespace kernelpro {
namespace {

Correct measured(double low, double high, double saved_low, double saved_high) {
  Correct correct;
  correct.versus = Correct::Versus{"incumbent", (low + high) / 2, low, high};
  Energy energy;
  energy.millijoules = 50;
  energy.versus = Energy::Versus{(saved_low + saved_high) / 2, saved_low, saved_high};
  correct.energy = energy;
  return correct;
}

constexpr double kEffect = 0.005;

TEST(Objective, TextsRoundTrip) {
  for (const char* text : {"time", "energy", "time,energy", "weighted:0.3"}) {
    const auto objective = objective_from_text(text);
    ASSERT_TRUE(objective) << text;
    EXPECT_EQ(objective_text(*objective), text);
  }
  for (const char* text : {"", "speed", "weighted", "weighted:", "weighted:1", "weighted:-1",
                           "weighted:0.5x", "energy,time"}) {
    EXPECT_FALSE(objective_from_text(text)) << text;
  }
}

TEST(Objective, RowsAreWholeAndDescribed) {
  const auto page = read_file(KERNELPRO_SOURCE_DIR "/docs/the-loop.md");
  ASSERT_TRUE(page);
  std::set<std::string_view> names;
  for (const ObjectiveRow& row : objectives()) {
    SCOPED_TRACE(row.name);
    EXPECT_TRUE(names.insert(row.name).second);
    EXPECT_TRUE(contains(objective_help(), objective_form(row) + ": " + std::string(row.help)));
    EXPECT_TRUE(contains(*page, "| `" + objective_form(row) + "` |"));
    // A cost or a tie that takes energy has it measured.
    EXPECT_EQ(row.wants_energy, row.weight.value_or(0.5) > 0 || row.breaks_ties);
    const auto named = objective_from_text(replace_all(objective_form(row), "W", "0.3"));
    ASSERT_TRUE(named);
    EXPECT_EQ(named->name, row.name);
    EXPECT_EQ(named->weight, row.weight.value_or(0.3));
  }
  EXPECT_EQ(objective_text(kLeastEnergy), "energy");
  EXPECT_TRUE(worth_energy(measured(0.5, 0.6, 1, 1), kLeastEnergy));
}

TEST(Objective, TimeAloneLooksAtNothingElse) {
  EXPECT_TRUE(beats(measured(1.02, 1.04, 0.5, 0.6), {"time", 0}, kEffect));
  EXPECT_FALSE(beats(measured(0.99, 1.01, 1.5, 1.6), {"time", 0}, kEffect));
}

TEST(Objective, EnergyDecidesAmongEquallyFastOnes) {
  const Objective both{"time,energy", 0};
  EXPECT_TRUE(beats(measured(0.995, 1.005, 1.05, 1.07), both, kEffect));
  EXPECT_FALSE(beats(measured(0.995, 1.005, 0.99, 1.07), both, kEffect));
  // An interval too wide for "equal" does not make energy count.
  EXPECT_FALSE(beats(measured(0.97, 1.02, 1.05, 1.07), both, kEffect));
  // Faster wins whatever its energy; slower loses.
  EXPECT_TRUE(beats(measured(1.10, 1.12, 0.8, 0.9), both, kEffect));
  EXPECT_FALSE(beats(measured(0.90, 0.95, 1.5, 1.6), both, kEffect));
}

TEST(Objective, EnergyAndWeights) {
  EXPECT_TRUE(beats(measured(0.7, 0.8, 1.05, 1.07), {"energy", 1}, kEffect));
  EXPECT_FALSE(beats(measured(1.7, 1.8, 0.95, 0.97), {"energy", 1}, kEffect));
  // 1.2^0.5 * 0.9^0.5 = 1.04; 1.2^0.2 * 0.9^0.8 = 0.95.
  EXPECT_TRUE(beats(measured(1.2, 1.2, 0.9, 0.9), {"weighted", 0.5}, kEffect));
  EXPECT_FALSE(beats(measured(1.2, 1.2, 0.9, 0.9), {"weighted", 0.8}, kEffect));
  Correct alone = measured(1.2, 1.2, 1, 1);
  alone.energy->versus.reset();
  EXPECT_TRUE(beats(alone, {"energy", 1}, kEffect)) << "the incumbent's is not known";
  alone.versus->low = 0.9;
  EXPECT_FALSE(beats(alone, {"energy", 1}, kEffect));
  Correct unmeasured = measured(1.2, 1.2, 1, 1);
  unmeasured.energy.reset();
  EXPECT_FALSE(beats(unmeasured, {"energy", 1}, kEffect));
  EXPECT_FALSE(beats(unmeasured, {"weighted", 0.5}, kEffect));
}

TEST(Objective, EnergyIsMeasuredWhereItMayDecide) {
  const Objective both{"time,energy", 0};
  EXPECT_TRUE(worth_energy(measured(0.995, 1.005, 1, 1), both));
  EXPECT_TRUE(worth_energy(measured(1.1, 1.2, 1, 1), both));
  EXPECT_FALSE(worth_energy(measured(0.5, 0.6, 1, 1), both));
  EXPECT_TRUE(worth_energy(measured(0.5, 0.6, 1, 1), {"energy", 1}));
  EXPECT_FALSE(worth_energy(measured(0.995, 1.005, 1, 1), {"time", 0}));
}

TEST(Objective, CostsAreWhatASearchCompares) {
  const Correct correct = measured(1, 1, 1, 1);
  EXPECT_EQ(cost_of(100, correct, {"time", 0}), 100);
  EXPECT_EQ(cost_of(100, correct, {"energy", 1}), 50);
  EXPECT_NEAR(cost_of(200, correct, {"weighted", 0.5}), 100, 1e-9);
}

}  // namespace
}  // namespace kernelpro
