// SPDX-License-Identifier: Apache-2.0
#include "task/load/start.h"

#include <gtest/gtest.h>

#include "base/text.h"

namespace kernelpro {
namespace {

Task pytorch_task() {
  Task task;
  task.name = "relu";
  task.module = Module{"/relu.py", "class Model:\n    pass", ""};
  return task;
}

TEST(Start, IsTheKernelOfTheTarget) {
  Task task = pytorch_task();
  task.kernel_cu = "// @knob TILE 16 32\nint a;\n";
  task.other_kernels["py"] = "class ModelNew(Model): pass\n";
  const auto start = start_candidate(task, TargetKind::kCuda);
  ASSERT_TRUE(start) << start.error().text();
  EXPECT_EQ(start->language, Language::kCuda);
  EXPECT_EQ(start->source, task.kernel_cu);
  EXPECT_EQ(start->knobs, (KnobValues{{"TILE", "16"}}));
  EXPECT_EQ(start->origin.proposer, Origin::kStart);
  task.kernel_cu = "// @knob TILE\nint a;\n";
  const auto faulty = start_candidate(task, TargetKind::kCuda);
  ASSERT_FALSE(faulty);
  EXPECT_TRUE(contains(faulty.error().message, "kernel.cu, ")) << faulty.error().message;
}

TEST(Start, MayBeAnotherImplementationInPyTorch) {
  Task task = pytorch_task();
  task.other_kernels["py"] = "# @knob TILE 1 2\nclass ModelNew(Model): pass\n";
  const auto start = start_candidate(task, TargetKind::kCuda);
  ASSERT_TRUE(start) << start.error().text();
  EXPECT_EQ(start->language, Language::kPython);
  EXPECT_EQ(start->source, task.other_kernels["py"]);
  EXPECT_TRUE(start->knobs.empty());
  EXPECT_EQ(start->origin.idea, "The PyTorch implementation that was given.");
  const auto refused = start_candidate(task, TargetKind::kCpu);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, "the cpu target runs no PyTorch candidates to start from");
  EXPECT_EQ(refused.error().next, "use --target cuda, or start from a .cpp");
}

TEST(Start, IsTheModuleItselfWhereItRuns) {
  const Task task = pytorch_task();
  const auto start = start_candidate(task, TargetKind::kCuda);
  ASSERT_TRUE(start) << start.error().text();
  EXPECT_EQ(start->language, Language::kPython);
  EXPECT_EQ(start->source, "class Model:\n    pass\n\n\nclass ModelNew(Model):\n    pass\n");
  const auto empty = start_candidate(task, TargetKind::kCpu);
  ASSERT_TRUE(empty) << empty.error().text();
  EXPECT_EQ(empty->language, Language::kCpp);
  EXPECT_TRUE(contains(empty->source, "void launch(const Args&) {}"));
}

TEST(Start, NeedsAKernel) {
  Task task;
  task.name = "sum";
  for (const TargetKind target : {TargetKind::kCpu, TargetKind::kCuda}) {
    const auto start = start_candidate(task, target);
    ASSERT_FALSE(start);
    EXPECT_TRUE(contains(start.error().next, kernel_file_name(native_language(target))));
  }
}

}  // namespace
}  // namespace kernelpro
