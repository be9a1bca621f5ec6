// SPDX-License-Identifier: Apache-2.0
#include "measure/cpu/values.h"

#include <gtest/gtest.h>

namespace kernelpro {
namespace {

constexpr double kOrderNs = 12000;

TEST(ValueTimes, AKernelThatIsSlowerOnOtherValuesIsSeen) {
  ValueTimes times;
  EXPECT_TRUE(times.slower(kOrderNs).empty());
  for (const double us : {50, 52, 51, 400}) times.add_given(kOrderNs + us * 1e3);
  EXPECT_FALSE(times.wants_more(DrawKind::kFractions, kOrderNs)) << "no call yet";
  int calls = 0;
  do {
    times.add_probe(DrawKind::kFractions, kOrderNs + 120e3);
    ++calls;
  } while (times.wants_more(DrawKind::kFractions, kOrderNs));
  EXPECT_EQ(calls, 6);
  const auto slower = times.slower(kOrderNs);
  ASSERT_EQ(slower.size(), 1u);
  EXPECT_EQ(slower[0].kind, DrawKind::kFractions);
  EXPECT_NEAR(slower[0].probe_us, 120, 1e-9);
  EXPECT_NEAR(slower[0].given_us, 51.5, 1e-9);
}

TEST(ValueTimes, ALateCallProvesNothing) {
  ValueTimes times;
  for (const double us : {50, 52, 51}) times.add_given(kOrderNs + us * 1e3);
  times.add_probe(DrawKind::kCentred, kOrderNs + 900e3);
  EXPECT_TRUE(times.wants_more(DrawKind::kCentred, kOrderNs));
  times.add_probe(DrawKind::kCentred, kOrderNs + 53e3);
  EXPECT_FALSE(times.wants_more(DrawKind::kCentred, kOrderNs)) << "as fast as usual";
  EXPECT_TRUE(times.slower(kOrderNs).empty());
}

// A processor that is slow for a while, and a probe's calls within that time.
TEST(ValueTimes, AMachineThatSlowsDownProvesNothing) {
  ValueTimes times;
  for (int i = 0; i < 100; ++i) times.add_given(kOrderNs + 50e3);
  for (int i = 0; i < 6; ++i) {
    for (int k = 0; k < 3; ++k) times.add_given(kOrderNs + 80e3);
    times.add_probe(DrawKind::kCentred, kOrderNs + 82e3);
    for (int k = 0; k < 3; ++k) times.add_given(kOrderNs + 80e3);
  }
  for (int i = 0; i < 100; ++i) times.add_given(kOrderNs + 50e3);
  EXPECT_TRUE(times.slower(kOrderNs).empty());
  // One that is slower than its neighbours each time is.
  for (int i = 0; i < 6; ++i) {
    times.add_given(kOrderNs + (i % 2 == 0 ? 50e3 : 80e3));
    times.add_probe(DrawKind::kTiny, kOrderNs + 160e3);
  }
  ASSERT_EQ(times.slower(kOrderNs).size(), 1u);
  EXPECT_EQ(times.slower(kOrderNs)[0].kind, DrawKind::kTiny);
}

TEST(ValueTimes, ShortCallsDifferByWhatTheirOrdersTake) {
  ValueTimes times;
  times.add_given(kOrderNs + 500);
  for (int i = 0; i < 6; ++i) times.add_probe(DrawKind::kTiny, kOrderNs + 3000);
  EXPECT_TRUE(times.slower(kOrderNs).empty());
}

}  // namespace
}  // namespace kernelpro
