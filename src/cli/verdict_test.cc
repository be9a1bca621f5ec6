// SPDX-License-Identifier: Apache-2.0
#include "cli/verdict.h"

#include <gtest/gtest.h>

#include "base/text.h"
#include "core/testing/toy_task.h"

namespace kernelpro {
namespace {

// Of several timed cases a baseline has one, which need not be the last.
TEST(Verdict, ABaselineIsComparedInItsOwnCase) {
  const Task task = testing::toy_task();
  VerdictContext context;
  context.kernel = "new.cpp";
  context.task = &task;
  EvaluateOneResult result;
  Correct correct;
  correct.timings = {{"large", 100, 99, 101, 20, "calls"}, {"small", 10, 9.9, 10.1, 20, "calls"}};
  result.evaluation.outcome = correct;
  result.baselines = {{"eager", {"large", 300, 299, 301, 20, "stream"}, ""},
                      {"compile", {}, "it failed"}};
  const std::string text = verdict_text(context, result);
  EXPECT_TRUE(contains(text, "eager")) << text;
  EXPECT_TRUE(contains(text, ", 3.00x with this kernel")) << text;
  EXPECT_TRUE(contains(text, "compile: not measured: it failed")) << text;
  const Json json = verdict_json(context, result);
  ASSERT_EQ(json["baselines"].size(), 2u);
  EXPECT_EQ(json["baselines"][0]["case"], "large");
}

}  // namespace
}  // namespace kernelpro
