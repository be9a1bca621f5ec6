// SPDX-License-Identifier: Apache-2.0
#include "write/prompt/advice.h"

#include <gtest/gtest.h>

#include "base/text.h"
#include "write/testing.h"

namespace kernelpro {
namespace {

using Names = std::vector<std::string>;

Machine h200() {
  Machine machine;
  machine.target = "cuda";
  machine.name = "NVIDIA H200";
  machine.arch = "sm_90a";
  machine.parallel_units = 132;
  machine.ceilings = {4.2e12, 63e12, 790e12, "measured"};
  return machine;
}

// A module's task, whose tensors and operations are as given.
Task module_task(const std::string& source, double bytes, double flops, double products) {
  Task task;
  task.name = "case";
  task.module = Module{"/case.py", source, ""};
  Tensor x{"x", Role::kInput, DType::kFp32, {}, {}, 0};
  task.tensors = {x};
  Case c{"full", {}, true, {}};
  c.shapes = {{static_cast<std::int64_t>(bytes / 4)}};
  c.flops = flops;
  c.matmul_flops = products;
  task.cases = {c};
  return task;
}

Names advice(const Task& task) {
  const Machine machine = h200();
  return advice_for(task, TargetKind::kCuda, &machine);
}

TEST(Advice, IsChosenByWhatIsComputed) {
  EXPECT_EQ(advice(module_task("return torch.cumsum(x, dim=1)", 1e9, 0, 0)),
            (Names{"gpu", "hopper", "streams"}));
  EXPECT_EQ(advice(module_task("return torch.matmul(a, b)", 1e8, 1e12, 1e12)),
            (Names{"gpu", "hopper", "products"}));
  EXPECT_EQ(advice(module_task("self.c = nn.Conv2d(3, 96, 11)", 1e8, 1e12, 1e12)),
            (Names{"gpu", "hopper", "convolutions", "products"}));
  EXPECT_EQ(advice(module_task("F.scaled_dot_product_attention(q, k, v)", 1e8, 1e12, 1e12)),
            (Names{"gpu", "hopper", "attention", "products"}));
  // A matrix times a vector moves bytes: both texts hold.
  EXPECT_EQ(advice(module_task("return torch.matmul(a, v)", 1e9, 5e8, 5e8)),
            (Names{"gpu", "hopper", "products", "streams"}));
  Task grouped = module_task("result[e] = a[b:e].t() @ x[b:e]", 1e8, 1e12, 1e12);
  grouped.tensors.push_back({"ends", Role::kInput, DType::kInt32, {}, {}, 0});
  grouped.cases[0].shapes.push_back({128});
  EXPECT_EQ(advice(grouped), (Names{"gpu", "hopper", "products", "groups"}));
}

TEST(Advice, FollowsTheMachine) {
  const Task task = module_task("return x.relu()", 4.2e9, 0, 0);
  EXPECT_TRUE(advice_for(task, TargetKind::kCpu, nullptr).empty());
  EXPECT_EQ(advice_for(task, TargetKind::kCuda, nullptr), (Names{"gpu", "streams"}));
  Machine machine = h200();
  machine.arch = "sm_80";
  EXPECT_EQ(advice_for(task, TargetKind::kCuda, &machine), (Names{"gpu", "streams"}));
}

TEST(Advice, TellsTheFloorsOfTheLargestTimedCase) {
  const Machine machine = h200();
  Prompts prompts;
  PromptFields fields = advice_fields(module_task("torch.matmul(a, b)", 4.2e9, 63e12, 63e12),
                                      TargetKind::kCuda, &machine, prompts);
  EXPECT_TRUE(contains(fields["machine"], "NVIDIA H200 (sm_90a), 132 multiprocessors"));
  EXPECT_TRUE(contains(fields["machine"], "once takes 1.00 ms at")) << fields["machine"];
  // fp32 owed: the matrix units' rate does not hold.
  EXPECT_TRUE(contains(fields["machine"], "1000 ms") || contains(fields["machine"], "1.00 s"))
      << fields["machine"];
  EXPECT_TRUE(contains(fields["compile"], "-arch=sm_90a"));
  EXPECT_TRUE(
      advice_fields(module_task("x", 1, 0, 0), TargetKind::kCpu, &machine, prompts).empty());
}

// Every text is chosen for some task, and none says a field's name.
TEST(Advice, TextsHaveNoFieldsLeft) {
  const Machine machine = h200();
  Prompts prompts;
  for (const char* source : {"attention", "conv2d", "cumsum"}) {
    const PromptFields fields =
        advice_fields(module_task(source, 1e6, 1e9, 0), TargetKind::kCuda, &machine, prompts);
    for (const auto& [name, text] : fields) EXPECT_FALSE(contains(text, "{{")) << name;
  }
}

}  // namespace
}  // namespace kernelpro
