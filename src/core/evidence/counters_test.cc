// SPDX-License-Identifier: Apache-2.0
#include "core/evidence/counters.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/evidence/metrics.h"

namespace kernelpro {
namespace {

TEST(Counters, SetsAreOfTheRegistry) {
  const auto full = counters_of(CounterSet::kFull), triage = counters_of(CounterSet::kTriage);
  EXPECT_TRUE(counters_of(CounterSet::kOff).empty());
  EXPECT_LT(triage.size(), full.size());
  for (const std::string& name : full) EXPECT_NE(find_metric(name), nullptr) << name;
  for (const std::string& name : triage) {
    EXPECT_NE(std::find(full.begin(), full.end(), name), full.end()) << name;
  }
  EXPECT_EQ(triage.front(), "gpu__time_duration.sum") << "nothing can be merged without it";
}

TEST(Counters, NamesOfOtherChipsLeadBack) {
  EXPECT_EQ(counter_on("dram__bytes_read.sum", "GH100"), "dram__bytes_read.sum");
  EXPECT_EQ(counter_on("dram__bytes_read.sum", "GB202"), "dram__bytes_op_read.sum");
  EXPECT_EQ(counter_on("dram__bytes_read.sum", ""), "dram__bytes_read.sum");
  for (const char* chip : {"GA100", "GH100", "GB100", "GB202"}) {
    for (const std::string& name : counters_of(CounterSet::kFull)) {
      EXPECT_EQ(counter_from(counter_on(name, chip)), name) << chip;
    }
  }
}

TEST(Counters, AnswersSurviveTheirJson) {
  CounterAnswers answers;
  answers.source = "cupti";
  answers.chip = "GH100";
  answers.set = CounterSet::kTriage;
  answers.passes = 3;
  answers.phases_ms["passes"] = 12.5;
  answers.launches = {{"_Z1kv", 2, {{"gpu__time_duration.sum", 1e4}}}, {"_Z1lv", 3, {}}};
  answers.left_out = 7;
  answers.report = "\"ID\",\"x\"\n";
  answers.missing = {{Family::kCounters, "b", "c", {"gpu__time_duration.sum"}}};
  const auto again = counter_answers_from_json(counter_answers_to_json(answers));
  ASSERT_TRUE(again);
  EXPECT_EQ(again->source, answers.source);
  EXPECT_EQ(again->set, answers.set);
  EXPECT_EQ(again->phases_ms, answers.phases_ms);
  ASSERT_EQ(again->launches.size(), 2u);
  EXPECT_EQ(again->launches[0].node, 2);
  EXPECT_EQ(again->launches[0].values, answers.launches[0].values);
  EXPECT_EQ(again->left_out, 7);
  EXPECT_EQ(again->report, answers.report);
  ASSERT_EQ(again->missing.size(), 1u);
  EXPECT_EQ(again->missing[0].family, Family::kCounters);
  EXPECT_EQ(again->missing[0].next, "c");
  EXPECT_EQ(again->missing[0].metrics, answers.missing[0].metrics);

  EXPECT_FALSE(counter_answers_from_json("[]"));
  EXPECT_FALSE(counter_answers_from_json("{\"launches\":[3]}"));
  // Values that are not numbers are skipped.
  const auto holes = counter_answers_from_json(
      R"({"launches":[{"function":"k","node":0,"values":{"a":null,"b":"7","c":3}}]})");
  ASSERT_TRUE(holes);
  EXPECT_EQ(holes->launches.at(0).values, (std::map<std::string, double>{{"c", 3}}));
  EXPECT_EQ(counter_set_from_name("half"), std::nullopt);
}

}  // namespace
}  // namespace kernelpro
