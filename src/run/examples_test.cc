// SPDX-License-Identifier: Apache-2.0
// An example as a new user runs it, on the cpu target.
#include <gtest/gtest.h>

#include <algorithm>

#include "run/evaluate_one.h"
#include "task/open/open_task.h"

namespace kernelpro {
namespace {

// The example with the longest sums: their error must not look like low precision.
TEST(Examples, TheStartOfLayerNormIsRight) {
  OpenSettings open;
  open.target = TargetKind::kCpu;
  const auto opened = open_task(std::string(KERNELPRO_SOURCE_DIR) + "/examples/layernorm", open);
  ASSERT_TRUE(opened) << opened.error().text();
  Task task = opened->task;  // of the usual length, but fewer rows
  for (Case& each : task.cases) each.dims["ROWS"] = std::min<std::int64_t>(each.dims["ROWS"], 256);
  const auto one = evaluate_one(task, TargetKind::kCpu, task.kernel_cpp, {}, {});
  ASSERT_TRUE(one) << one.error().text();
  EXPECT_NE(one->evaluation.correct(), nullptr) << outcome_summary(one->evaluation.outcome);
}

}  // namespace
}  // namespace kernelpro
