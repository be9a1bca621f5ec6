// SPDX-License-Identifier: Apache-2.0
#include "write/prompt/plan.h"

#include <gtest/gtest.h>

#include "write/prompt/focus.h"
#include "write/testing.h"

namespace kernelpro {
namespace {

Diagnosis diagnosis() {
  Diagnosis d;
  d.findings = {proposing::finding("scalar-loads", {"vectorize", "algorithm"}),
                proposing::finding("one-thread-busy", {"threads"})};
  return d;
}

TEST(Plan, ReadsWhatItAskedFor) {
  const auto ideas = ideas_of(
      "IDEA: Load four numbers at once.\nANSWERS: `scalar-loads: vectorize`\nGAIN: `1.8`\n\n"
      "IDEA: Split rows among\nall threads.\nANSWERS: one-thread-busy\nGAIN: about 3.5x, at most "
      "4\n"
      "IDEA: Something else.\nANSWERS: nothing\nGAIN: unknown\n",
      diagnosis(), 5);
  ASSERT_EQ(ideas.size(), 3u);
  EXPECT_EQ(ideas[0].text, "Load four numbers at once.");
  EXPECT_EQ(ideas[0].answers.text(), "scalar-loads: vectorize");
  EXPECT_EQ(ideas[0].gain, 1.8);
  EXPECT_EQ(ideas[1].text, "Split rows among all threads.");
  EXPECT_EQ(ideas[1].answers.text(), "one-thread-busy: threads") << "its first prescription";
  EXPECT_EQ(ideas[1].gain, 3.5);
  EXPECT_EQ(ideas[2].answers.text(), "");
  EXPECT_EQ(ideas[2].gain, 0);
}

TEST(Plan, ReadsThroughMarkdown) {
  const auto ideas = ideas_of(
      "Here are my ideas:\r\n\r\n1. **IDEA 1:** Tile it.\r\n   - **ANSWERS:** scalar-loads: "
      "algorithm"
      "\r\n   - *Gain*: 2\r\n\r\n### Idea 2: Unroll it.\r\nMore of it.\r\n\r\nNot of it.\r\n",
      diagnosis(), 5);
  ASSERT_EQ(ideas.size(), 2u);
  EXPECT_EQ(ideas[0].text, "Tile it.");
  EXPECT_EQ(ideas[0].answers.text(), "scalar-loads: algorithm");
  EXPECT_EQ(ideas[0].gain, 2);
  EXPECT_EQ(ideas[1].text, "Unroll it. More of it.");
}

TEST(Plan, TakesNoMoreThanAskedAndNothingTwice) {
  std::string reply;
  for (int i = 0; i < 9; ++i) reply += "IDEA: number " + std::to_string(i / 2) + "\n";
  EXPECT_EQ(ideas_of(reply, diagnosis(), 3).size(), 3u);
  EXPECT_EQ(ideas_of(reply, diagnosis(), 9).size(), 5u);
}

TEST(Plan, WithoutAPlannerIdeasAnswerFindingsThatNoChildAnswered) {
  Known parent, child;
  parent.id = 1;
  parent.diagnosis = diagnosis();
  child.candidate.origin.parent = 1;
  child.candidate.origin.answers = {"scalar-loads", "vectorize"};
  ProposalRequest request;
  request.parent = std::make_shared<const Known>(parent);
  request.history = {request.parent, std::make_shared<const Known>(child)};
  const auto ideas = ideas_without_planner(request, 5);
  ASSERT_EQ(ideas.size(), 2u);
  EXPECT_EQ(ideas[0].answers.text(), "one-thread-busy: threads");
  EXPECT_EQ(ideas[1].answers.text(), "");
  EXPECT_EQ(ideas_without_planner(request, 1).size(), 1u);
  // Where energy counts, it is asked for once; a child that names no finding was that.
  Correct correct;
  correct.energy.emplace();
  correct.energy->busy_w = 432;
  parent.evaluation.outcome = correct;
  request.parent = std::make_shared<const Known>(parent);
  request.objective = kLeastEnergy;
  const auto less = ideas_without_planner(request, 5);
  ASSERT_EQ(less.size(), 3u);
  EXPECT_EQ(less[0].text, energy_focus_text(request));
  EXPECT_EQ(less[1].answers.text(), "one-thread-busy: threads");
  // Another setting of its source is none.
  child.candidate.origin.answers = {};
  request.history = {request.parent, std::make_shared<const Known>(child)};
  EXPECT_EQ(ideas_without_planner(request, 5)[0].text, energy_focus_text(request));
  child.candidate.source = "// another source\n";
  request.history = {request.parent, std::make_shared<const Known>(child)};
  EXPECT_EQ(ideas_without_planner(request, 5)[0].answers.text(), "scalar-loads: vectorize");
  request.objective = {};
  request.feedback = Feedback::kNone;
  EXPECT_EQ(ideas_without_planner(request, 5).size(), 1u);
}

TEST(Plan, ALongIdeaStaysOneParagraph) {
  std::string euros;
  for (int i = 0; i < 1000; ++i) euros += "\xe2\x82\xac";
  const auto ideas = ideas_of("IDEA: a" + euros + "\n", diagnosis(), 3);
  ASSERT_EQ(ideas.size(), 1u);
  EXPECT_EQ(ideas[0].text, "a" + euros.substr(0, 1995) + " ...");
}

TEST(Plan, NothingIsNoPlan) {
  for (const char* reply : {"", "I have no idea.", "IDEA:", "IDEA:\n\nANSWERS: nothing\n",
                            "ANSWERS: scalar-loads\nGAIN: 2\n", "the IDEA: is inside a line"}) {
    EXPECT_TRUE(ideas_of(reply, diagnosis(), 3).empty()) << reply;
  }
}

TEST(Plan, AnInventedFindingIsAnsweredByNothing) {
  const auto ideas =
      ideas_of("IDEA: x\nANSWERS: no-such-tool: vectorize\nGAIN: 1e99\n", diagnosis(), 3);
  ASSERT_EQ(ideas.size(), 1u);
  EXPECT_EQ(ideas[0].answers.text(), "");
  EXPECT_EQ(ideas[0].gain, 0);
  const auto far = ideas_of("IDEA: \xff\xfe bytes\n", diagnosis(), 3);
  ASSERT_EQ(far.size(), 1u);
  EXPECT_EQ(far[0].text, "?? bytes");
}

}  // namespace
}  // namespace kernelpro
