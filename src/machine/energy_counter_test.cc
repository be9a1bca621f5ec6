// SPDX-License-Identifier: Apache-2.0
#include "machine/energy_counter.h"

#include <gtest/gtest.h>

namespace kernelpro {
namespace {

TEST(TickFinder, SeesTheCounterMove) {
  TickFinder ticks;
  EXPECT_FALSE(ticks.see(10.00, 500)) << "when it moved to this is not known";
  EXPECT_FALSE(ticks.see(10.05, 500));
  EXPECT_TRUE(ticks.see(10.08, 540));
  EXPECT_EQ(ticks.last().at_s, 10.08);
  EXPECT_FALSE(ticks.see(10.10, 540));
  EXPECT_EQ(ticks.last().at_s, 10.08) << "the moment of the tick, not of the last reading";
  EXPECT_TRUE(ticks.see(10.18, 580));
  EXPECT_EQ(ticks.last().joules, 580);
}

TEST(EnergyCounter, SaysWhatToDoWhereThereIsNone) {
  const auto counter = EnergyCounter::open("GPU-00000000-0000-0000-0000-000000000000");
  ASSERT_FALSE(counter);
  EXPECT_EQ(counter.error().kind, ErrorKind::kEnvironment);
  EXPECT_FALSE(counter.error().next.empty());
}

}  // namespace
}  // namespace kernelpro
