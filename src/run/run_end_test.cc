// SPDX-License-Identifier: Apache-2.0
#include "run/run_end.h"

#include <gtest/gtest.h>

#include "base/text.h"

namespace kernelpro {
namespace {

struct Case {
  const char* what;
  RunSettings settings;
  RunFacts facts;
  RunResult result;
  RunEnd end;
  const char* next;
};

RunSettings settings_of(const std::string& proposer, int most = 60) {
  RunSettings settings;
  settings.directory = "runs/x";
  settings.proposer = proposer;
  settings.max_evaluations = most;
  return settings;
}

RunResult result_of(int evaluations, std::int64_t best, double fraction = 0.2) {
  RunResult result;
  result.evaluations = evaluations;
  result.best = best;
  result.fraction_of_ceiling = fraction;
  return result;
}

TEST(RunEnd, TellsSuccessFromNothingAchieved) {
  const Case cases[] = {
      {"a search", settings_of("tuner"), {}, result_of(7, 3), RunEnd::kDone, ""},
      {"its start is the best", settings_of("tuner"), {}, result_of(7, 1), RunEnd::kDone, ""},
      {"one was asked for", settings_of("tuner", 1), {}, result_of(1, 1), RunEnd::kDone, ""},
      {"the start is at the ceiling",
       settings_of("model"),
       {},
       result_of(1, 1, 0.97),
       RunEnd::kDone,
       ""},
      {"interrupted",
       settings_of("tuner"),
       {true, false, 4},
       result_of(4, 2),
       RunEnd::kInterrupted,
       "kernelpro resume runs/x"},
      {"interrupted at once",
       settings_of("model"),
       {true, false, 0},
       result_of(0, 0),
       RunEnd::kInterrupted,
       "kernelpro resume runs/x"},
      {"no model answered", settings_of("model"), {}, result_of(1, 1), RunEnd::kNothing, "server"},
      {"no reply came",
       settings_of("exchange"),
       {},
       result_of(1, 1),
       RunEnd::kNothing,
       "runs/x/exchange"},
      {"no knobs", settings_of("tuner"), {}, result_of(1, 1), RunEnd::kNothing, "@knob"},
      {"nothing is correct",
       settings_of("tuner", 10),
       {},
       result_of(10, 0),
       RunEnd::kNothing,
       "kernelpro show runs/x"},
      {"replies were measured",
       settings_of("exchange", 0),
       {false, true, 2},
       result_of(3, 1),
       RunEnd::kDone,
       ""},
      {"what was measured before is confirmed",
       settings_of("exchange", 0),
       {false, true, 0, true},
       result_of(3, 1),
       RunEnd::kDone,
       ""},
      {"no reply to measure",
       settings_of("exchange", 0),
       {false, true, 0},
       result_of(3, 1),
       RunEnd::kNothing,
       "kernelpro propose runs/x"},
  };
  for (Case each : cases) {
    SCOPED_TRACE(each.what);
    judge_end(each.settings, each.facts, &each.result);
    EXPECT_EQ(each.result.end, each.end);
    EXPECT_EQ(each.result.next.empty(), each.end == RunEnd::kDone);
    EXPECT_TRUE(contains(each.result.next, each.next)) << each.result.next;
  }
}

TEST(RunEnd, AnExhaustedSearchSaysWhatWouldGoOn) {
  Standing standing;
  standing.has_correct = true;
  standing.fraction_of_ceiling = 0.96;
  const auto found = find_proposer("tuner");
  ASSERT_TRUE(found);
  const ProposerRow& tuner = **found;
  EXPECT_TRUE(contains(why_exhausted(standing, tuner), "at 96 % of the ceiling"));
  standing.ceiling_disturbed = true;  // it may be too low
  EXPECT_TRUE(contains(why_exhausted(standing, tuner), "--model"));
  standing.ceiling_disturbed = false;
  for (const double fraction : {0.5, 2.1}) {
    standing.fraction_of_ceiling = fraction;
    EXPECT_TRUE(contains(why_exhausted(standing, tuner), "--model")) << fraction;
  }
}

}  // namespace
}  // namespace kernelpro
