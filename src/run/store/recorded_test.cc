// SPDX-License-Identifier: Apache-2.0
#include "run/store/recorded.h"

#include <gtest/gtest.h>

#include "base/files.h"
#include "run/store/testing.h"

namespace kernelpro {
namespace {

// The machine got twice as fast between the two; only what was measured in turn counts.
TEST(Recorded, SpeedUpsAreThoseOfTheTurns) {
  const TempDir dir;
  {
    const auto store = storing::create(dir.path());
    Evaluation first = storing::correct(100), second = storing::correct(25);
    std::get<Correct>(first.outcome).versus.reset();
    const Candidate start = storing::candidate(1);
    std::get<Correct>(second.outcome).versus = {start.content_hash(), 2, 1.9, 2.1};
    const auto ids = store->add({start, storing::candidate(2, 1), storing::candidate(3, 1)});
    ASSERT_TRUE(ids) << ids.error().text();
    ASSERT_TRUE(store->finish(1, first, {}, {}, 1));
    ASSERT_TRUE(store->finish(3, Evaluation{TimedOut(), 1, 0, "", ""}, {}, {}, 2));
    ASSERT_TRUE(store->finish(2, second, {}, {}, 3));
  }
  const auto recorded = read_recorded(dir.path());
  ASSERT_TRUE(recorded) << recorded.error().text();
  ASSERT_EQ(recorded->results.size(), 3u);
  EXPECT_DOUBLE_EQ(recorded->results[0].speedup, 1);
  EXPECT_EQ(recorded->results[1].id, 2);
  EXPECT_DOUBLE_EQ(recorded->results[1].us, 25);
  EXPECT_DOUBLE_EQ(recorded->results[1].speedup, 2) << "four times, by the clock";
  EXPECT_EQ(recorded->results[2].speedup, 0);
}

}  // namespace
}  // namespace kernelpro
