// SPDX-License-Identifier: Apache-2.0
#include "core/machine/machine.h"

#include <gtest/gtest.h>

namespace kernelpro {
namespace {

Ceilings measured(double copy, double fma, bool quiet) {
  Ceilings c;
  c.copy_bytes_per_s = copy;
  c.fma_flops_per_s = fma;
  c.how = quiet ? "quiet" : "busy";
  c.quiet = quiet;
  c.rounds = 2;
  c.foreign = quiet ? 0 : 0.6;
  c.measured_at = quiet ? "2026-11-21T09:00:00Z" : "2026-11-22T09:00:00Z";
  return c;
}

TEST(Ceilings, TheBestRateStays) {
  const Ceilings best = better_of(measured(40e9, 200e9, false), measured(80e9, 190e9, true));
  EXPECT_EQ(best.copy_bytes_per_s, 80e9);
  EXPECT_EQ(best.fma_flops_per_s, 200e9);
  EXPECT_EQ(best.how, "quiet");
  EXPECT_TRUE(best.quiet);
  EXPECT_EQ(best.rounds, 4);
  EXPECT_DOUBLE_EQ(best.foreign, 0.3);
  EXPECT_EQ(best.measured_at, "2026-11-22T09:00:00Z");
}

TEST(Ceilings, NoiseIsNoImprovement) {
  const Ceilings then = measured(80e9, 200e9, true);
  EXPECT_FALSE(better_than(measured(80.5e9, 200e9, true), then));
  EXPECT_TRUE(better_than(measured(80e9, 203e9, true), then));
  EXPECT_TRUE(better_than(then, measured(80e9, 200e9, false)));
}

TEST(Ceilings, JsonKeepsHowTheyWereMeasured) {
  Machine machine;
  machine.name = "a machine";
  machine.ceilings = measured(40e9, 200e9, false);
  const auto back = machine_from_json(machine_to_json(machine));
  ASSERT_TRUE(back);
  EXPECT_FALSE(back->ceilings.quiet);
  EXPECT_EQ(back->ceilings.rounds, 2);
  EXPECT_EQ(back->ceilings.foreign, 0.6);
  EXPECT_EQ(back->ceilings.measured_at, "2026-11-22T09:00:00Z");
  EXPECT_EQ(ceilings_basis(back->ceilings),
            "best of 2 measurements while other processes used 60 % of this machine");
}

TEST(Ceilings, ARecordOfAnEarlierVersionCountsAsQuiet) {
  const auto old = machine_from_json("{\"target\":\"cpu\",\"copy_bytes_per_s\":4e10}");
  ASSERT_TRUE(old);
  EXPECT_TRUE(old->ceilings.quiet);
}

TEST(CeilingShare, AboveTheCeilingIsNoShare) {
  EXPECT_EQ(ceiling_share(0.034), "3.4 %");
  EXPECT_EQ(ceiling_share(0.97), "97 %");
  EXPECT_EQ(ceiling_share(1.04), "104 %");
  EXPECT_EQ(ceiling_share(698.72), ">100 %");
  EXPECT_EQ(ceiling_note(1.04), "");
  EXPECT_NE(ceiling_note(698.72).find("doctor --remeasure"), std::string::npos);
}

}  // namespace
}  // namespace kernelpro
