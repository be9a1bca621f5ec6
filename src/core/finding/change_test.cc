// SPDX-License-Identifier: Apache-2.0
#include "core/finding/change.h"

#include <gtest/gtest.h>

namespace kernelpro {
namespace {

Diagnosis spent(double floor_us, double wait_us) {
  Diagnosis d;
  d.account.us = floor_us + wait_us + 4;
  d.account.parts = {{PartKind::kKernels, {}, floor_us + wait_us, Level::kCounters, ""},
                     {PartKind::kLaunch, {}, 4, Level::kTiming, ""}};
  KernelAccount kernel;
  kernel.us = floor_us + wait_us;
  kernel.parts = {{PartKind::kFloor, {}, floor_us, Level::kTiming, ""},
                  {PartKind::kWait, Stall::kBarrier, wait_us, Level::kCounters, ""}};
  d.account.kernels = {kernel};
  return d;
}

TEST(WhatChanged, SaysWhatMovedAndWhatWasPromised) {
  Diagnosis parent = spent(100, 96);
  Finding finding;
  finding.tool = "excessive-barriers";
  finding.likely_speedup = 1.5;
  parent.findings = {finding};
  const WhatChanged change =
      what_changed(parent, spent(100, 56), {"excessive-barriers", "synchronization"});
  ASSERT_EQ(change.moved.size(), 1u);
  EXPECT_EQ(change.moved[0].kind, PartKind::kWait);
  EXPECT_EQ(change.moved[0].stall, Stall::kBarrier);
  EXPECT_EQ(change.moved[0].before_us, 96);
  EXPECT_EQ(change.moved[0].after_us, 56);
  EXPECT_EQ(change.promised, 1.5);
  const std::string text = change_to_text(change);
  EXPECT_NE(text.find("(1.25x), in answer to excessive-barriers: synchronization, which promised "
                      "1.5x."),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("- waits for other warps of the block, at a barrier: "), std::string::npos)
      << text;
}

TEST(WhatChanged, WhatTheMachineLostIsNoChange) {
  const WhatChanged same = what_changed(spent(100, 50), spent(150, 75), {}, 1.5);
  EXPECT_NEAR(same.before_us, same.after_us, 2.5);  // the launches, which took as long as before
  EXPECT_TRUE(same.moved.empty());
  const WhatChanged faster = what_changed(spent(100, 100), spent(100, 50), {}, 0.75);
  ASSERT_EQ(faster.moved.size(), 1u) << "the floor is as it was";
  EXPECT_EQ(faster.moved[0].kind, PartKind::kWait);
}

TEST(WhatChanged, AnAccountFromTimingAloneSaysNothingAboutParts) {
  Diagnosis unprofiled = spent(100, 50);
  for (KernelAccount& kernel : unprofiled.account.kernels) kernel.parts.clear();
  for (const WhatChanged& change : {what_changed(spent(100, 96), unprofiled, {}),
                                    what_changed(unprofiled, spent(100, 96), {})}) {
    EXPECT_TRUE(change.moved.empty());
    EXPECT_NE(change_to_text(change).find("not profiled"), std::string::npos);
  }
  EXPECT_TRUE(what_changed(unprofiled, unprofiled, {}).parts_known);
}

TEST(WhatChanged, WithoutAccountsThereIsNothingToSay) {
  EXPECT_EQ(change_to_text(what_changed({}, spent(100, 50), {})), "");
  EXPECT_NE(change_to_text(what_changed(spent(100, 50), spent(100, 50), {})).find("no part"),
            std::string::npos);
}

}  // namespace
}  // namespace kernelpro
