// SPDX-License-Identifier: Apache-2.0
// The examples as a newcomer meets them: each one's starting kernel is right on the cpu target.
#include <gtest/gtest.h>

#include "base/files.h"
#include "run/evaluate_one.h"
#include "run/open_task.h"

namespace kernelpro {
namespace {

TEST(Examples, StartingKernelsAreRight) {
  const std::string examples = std::string(KERNELPRO_SOURCE_DIR) + "/examples";
  int kernels = 0;
  for (const std::string& name : list_dir(examples)) {
    if (!exists(join(examples, name + "/kernel.cpp"))) continue;
    OpenSettings open;
    open.target = TargetKind::kCpu;
    const auto opened = open_task(join(examples, name), open);
    ASSERT_TRUE(opened) << opened.error().text();
    RunSettings settings;
    const auto one =
        evaluate_one(opened->task, TargetKind::kCpu, opened->task.kernel_cpp, {}, settings);
    ASSERT_TRUE(one) << name << ": " << one.error().text();
    EXPECT_NE(one->evaluation.correct(), nullptr)
        << name << ": " << outcome_summary(one->evaluation.outcome);
    ++kernels;
  }
  EXPECT_GE(kernels, 3);
}

}  // namespace
}  // namespace kernelpro
