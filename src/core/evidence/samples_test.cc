// SPDX-License-Identifier: Apache-2.0
#include "core/evidence/samples.h"

#include <gtest/gtest.h>

namespace kernelpro {
namespace {

TEST(Samples, SurviveTheirJson) {
  SampleAnswers answers;
  answers.source = "cupti";
  answers.period_cycles = 256;
  answers.dropped = 3;
  answers.kernels = {
      {"_Z1kPf", {{0, {{Stall::kSelected, 9, 0}}}, {0x120, {{Stall::kLongScoreboard, 40, 25.5}}}}},
      {"_Z1lPf", {}}};
  answers.missing = {{Family::kSamples, "no permission", "allow it"}};
  const auto again = sample_answers_from_json(sample_answers_to_json(answers));
  ASSERT_TRUE(again);
  EXPECT_EQ(again->source, "cupti");
  EXPECT_EQ(again->period_cycles, 256);
  EXPECT_EQ(again->dropped, 3);
  ASSERT_EQ(again->kernels.size(), 2u);
  ASSERT_EQ(again->kernels[0].pcs.size(), 2u);
  const PcSamples& second = again->kernels[0].pcs[1];
  EXPECT_EQ(second.offset, 0x120);
  ASSERT_EQ(second.stalls.size(), 1u);
  EXPECT_EQ(second.stalls[0].stall, Stall::kLongScoreboard);
  EXPECT_EQ(second.stalls[0].all, 40);
  EXPECT_EQ(second.stalls[0].exposed, 25.5);
  ASSERT_EQ(again->missing.size(), 1u);
  EXPECT_EQ(again->missing[0].family, Family::kSamples);
}

TEST(Samples, DamagedJsonIsRefusedOrMended) {
  EXPECT_FALSE(sample_answers_from_json("[]"));
  EXPECT_FALSE(sample_answers_from_json(R"({"kernels":[4]})"));
  EXPECT_FALSE(sample_answers_from_json(R"({"kernels":[{"pcs":[{"at":-1}]}]})"));
  EXPECT_FALSE(sample_answers_from_json(R"({"kernels":[{"pcs":[{"at":1e99}]}]})"));
  const auto mended = sample_answers_from_json(
      R"({"kernels":[{"function":"k","pcs":[{"at":32,"stalls":{"wait":[2,5],"new":[1,1]}},)"
      R"({"at":16,"stalls":{"wait":[-2,"x"],"barrier":7}}]}]})");
  ASSERT_TRUE(mended);
  const std::vector<PcSamples>& pcs = mended->kernels.at(0).pcs;
  ASSERT_EQ(pcs.size(), 2u);
  EXPECT_EQ(pcs[0].offset, 16);
  ASSERT_EQ(pcs[0].stalls.size(), 1u);
  EXPECT_EQ(pcs[0].stalls[0].all, 0);
  ASSERT_EQ(pcs[1].stalls.size(), 1u);
  EXPECT_EQ(pcs[1].stalls[0].exposed, 2) << "no more than all of them";
}

TEST(Stalls, AreFoundUnderEachProfilersName) {
  for (int i = 0; i < kStalls; ++i) {
    const StallRow& row = stall_row(static_cast<Stall>(i));
    const std::string name(row.name);
    for (const std::string& each :
         {name, "stalled_" + name, "smsp__pcsamp_warps_issue_stalled_" + name,
          "smsp__pcsamp_warps_issue_stalled_" + name + "_not_issued"}) {
      EXPECT_EQ(stall_from_name(each), row.stall) << each;
    }
  }
  EXPECT_FALSE(stall_from_name("no_such"));
}

}  // namespace
}  // namespace kernelpro
