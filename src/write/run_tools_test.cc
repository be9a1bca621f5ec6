// SPDX-License-Identifier: Apache-2.0
#include "write/run_tools.h"

#include <gtest/gtest.h>

#include "base/text.h"
#include "write/testing.h"

namespace kernelpro {
namespace {

using namespace proposing;

struct RunToolsTest : ::testing::Test {
  Task t = task();
  std::vector<Known> all = {known(1, {}, 100), known(2, {{"VEC", "4"}}, 40),
                            known(3, {{"TILE", "32"}}, 0)};
  ProposalRequest request;
  void SetUp() override {
    all[0].diagnosis.account.us = 100;
    all[1].diagnosis.account.us = 40;
    all[1].diagnosis.findings = {finding("one-thread-busy", {"threads"})};
    all[1].diagnosis.tools = {{"one-thread-busy", ToolRun::State::kFired, ""},
                              {"register-spill", ToolRun::State::kSilent, "no spills"}};
    all[1].candidate.source += "// the second\n";
    request.task = &t;
    request.parent = shared(all[0]);
    set_history(all, 2, &request);
  }
  CodeTools::Answered ask(const char* tool, const char* arguments) const {
    return RunTools(request).call(tool, arguments);
  }
};

TEST_F(RunToolsTest, AnswerFromTheRun) {
  EXPECT_EQ(RunTools(request).specs().size(), 3u);
  EXPECT_TRUE(contains(ask("show_candidate", R"({"id": 2})").text, "// the second"));
  EXPECT_TRUE(contains(ask("show_candidate", R"({"id": 3})").text, "no such register"));
  EXPECT_TRUE(contains(ask("show_diagnosis", R"({"id": 2})").text, "one-thread-busy"));
  const auto spills = ask("show_diagnosis", R"({"id": 2, "tool": "register-spill"})");
  EXPECT_TRUE(contains(spills.text, "found nothing: no spills")) << spills.text;
  EXPECT_TRUE(contains(ask("show_diagnosis", R"({"id": 2, "tool": "x"})").text, "there are"));
  const auto moved = ask("compare_candidates", R"({"before": 1, "after": 2})");
  EXPECT_TRUE(contains(moved.text, "2.5x")) << moved.text;
}

TEST_F(RunToolsTest, RefuseWhatIsNotThere) {
  for (const char* arguments : {R"({"id": 9})", "{}", "[]", "rubbish", R"({"id": "two"})"}) {
    EXPECT_TRUE(ask("show_candidate", arguments).failed) << arguments;
  }
  EXPECT_TRUE(ask("compare_candidates", R"({"before": 1, "after": 3})").failed);
}

TEST_F(RunToolsTest, WithholdWhatAWriterMayNotSee) {
  request.memory = false;
  EXPECT_TRUE(RunTools(request).specs().empty());
  request.memory = true;
  request.feedback = Feedback::kNone;
  EXPECT_FALSE(RunTools(request).has("show_diagnosis"));
  request.feedback = Feedback::kDiagnosed;
  set_history({all[0]}, 1, &request);
  EXPECT_TRUE(RunTools(request).specs().empty()) << "the prompt has it all";
}

}  // namespace
}  // namespace kernelpro
