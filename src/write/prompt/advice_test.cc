// SPDX-License-Identifier: Apache-2.0
#include "write/prompt/advice.h"

#include <gtest/gtest.h>

#include "base/files.h"
#include "base/testing.h"
#include "base/text.h"
#include "core/task/operator_family.h"
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

// A module's task with the given tensors and operations.
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
  return Prompts().craft_for(craft_subject(task, TargetKind::kCuda, &machine));
}

TEST(Advice, IsChosenByWhatIsComputed) {
  EXPECT_EQ(advice(module_task("return torch.cumsum(x, dim=1)", 1e9, 0, 0)),
            (Names{"gpu", "hopper", "streams", "scans"}));
  EXPECT_EQ(advice(module_task("return torch.matmul(a, b)", 1e8, 1e12, 1e12)),
            (Names{"gpu", "hopper", "products"}));
  EXPECT_EQ(advice(module_task("self.c = nn.Conv2d(3, 96, 11)", 1e8, 1e12, 1e12)),
            (Names{"gpu", "hopper", "convolutions", "products"}));
  EXPECT_EQ(advice(module_task("F.scaled_dot_product_attention(q, k, v)", 1e8, 1e12, 1e12)),
            (Names{"gpu", "hopper", "attention", "products"}));
  // Matrix times vector is memory-bound: both texts apply.
  EXPECT_EQ(advice(module_task("return torch.matmul(a, v)", 1e9, 5e8, 5e8)),
            (Names{"gpu", "hopper", "products", "streams"}));
  Task grouped = module_task("result[e] = a[b:e].t() @ x[b:e]", 1e8, 1e12, 1e12);
  grouped.tensors.push_back({"ends", Role::kInput, DType::kInt32, {}, {}, 0});
  grouped.cases[0].shapes.push_back({128});
  EXPECT_EQ(advice(grouped), (Names{"gpu", "hopper", "products", "groups"}));
}

TEST(Advice, FollowsTheMachine) {
  const Task task = module_task("return x.relu()", 4.2e9, 0, 0);
  const Prompts prompts;
  EXPECT_EQ(prompts.craft_for(craft_subject(task, TargetKind::kCpu, nullptr)), (Names{"cores"}));
  EXPECT_EQ(prompts.craft_for(craft_subject(task, TargetKind::kCuda, nullptr)),
            (Names{"gpu", "streams"}));
  Machine machine = h200();
  machine.arch = "sm_80";
  EXPECT_EQ(prompts.craft_for(craft_subject(task, TargetKind::kCuda, &machine)),
            (Names{"gpu", "streams"}));
}

TEST(Advice, TellsTheFloorsOfTheLargestTimedCase) {
  const Machine machine = h200();
  Prompts prompts;
  PromptFields fields = advice_fields(module_task("torch.matmul(a, b)", 4.2e9, 63e12, 63e12),
                                      TargetKind::kCuda, &machine, prompts);
  EXPECT_TRUE(contains(fields["machine"], "NVIDIA H200 (sm_90a), 132 multiprocessors"));
  EXPECT_TRUE(contains(fields["machine"], "once takes 1.00 ms at")) << fields["machine"];
  // fp32 required: the matrix units' rate does not apply.
  EXPECT_TRUE(contains(fields["machine"], "1000 ms") || contains(fields["machine"], "1.00 s"))
      << fields["machine"];
  EXPECT_TRUE(contains(fields["compile"], "-arch=sm_90a"));
}

TEST(Advice, DescribesAProcessor) {
  Machine machine;
  machine.target = "cpu";
  machine.name = "a processor";
  machine.arch = "x86-64";
  machine.parallel_units = 8;
  const Task task = module_task("x", 2e9, 1e9, 0);
  const Prompts prompts;
  EXPECT_EQ(advice_fields(task, TargetKind::kCpu, &machine, prompts).count("machine"), 0u)
      << "its rates are unknown";
  machine.ceilings = {2e10, 1.6e11, 0, "measured"};
  machine.instruction_sets = "AVX2, FMA";
  PromptFields fields = advice_fields(task, TargetKind::kCpu, &machine, prompts);
  const std::string text = fields["machine"];
  EXPECT_TRUE(contains(text,
                       "a processor (x86-64), 8 hardware threads, instruction sets: AVX2, "
                       "FMA. Caches: unknown."))
      << text;
  EXPECT_TRUE(contains(text, "copies at 20 GB/s")) << text;
  EXPECT_TRUE(contains(text, "fp32 FMAs at 160 GFLOP/s")) << text;
  EXPECT_FALSE(contains(text, "{{")) << text;
  EXPECT_TRUE(contains(fields["advice"], "on a processor"));
}

// Nothing about rows with two passes for a task that has none.
TEST(Advice, AStencilHearsNothingOfSoftmax) {
  const Task stencil = module_task("return x[1:] - 2 * x[:-1]", 4.2e9, 0, 0);
  const Task softmax = module_task("return torch.softmax(x, dim=1)", 4.2e9, 0, 0);
  const Machine machine = h200();
  const auto text = [&](const Task& task) {
    return advice_fields(task, TargetKind::kCuda, &machine, Prompts())["advice"];
  };
  EXPECT_FALSE(contains(text(stencil), "maximum and sum"));
  EXPECT_TRUE(contains(text(softmax), "maximum and sum"));
}

// Every combination of target, architecture, kinds and limit, against the rule in plain code.
TEST(Advice, EveryCombination) {
  const Prompts prompts;
  const Names kinds = {"attention", "convolution", "products", "groups", "softmax", "scan"};
  int seen = 0;
  for (const TargetKind target : {TargetKind::kCpu, TargetKind::kCuda}) {
    for (const char* arch : {"", "sm_80", "sm_90a", "sm_100a", "sm_120"}) {
      for (unsigned mask = 0; mask < 64; ++mask) {
        for (const bool memory : {false, true}) {
          CraftSubject subject{target, Architecture::parse(arch), {}, memory};
          for (std::size_t k = 0; k < kinds.size(); ++k) {
            if ((mask >> k & 1) != 0) subject.family.push_back(kinds[k]);
          }
          const auto is = [&](const char* kind) { return has_kind(subject.family, kind); };
          Names expected;
          if (target == TargetKind::kCuda) {
            expected = {"gpu"};
            if (std::string(arch) == "sm_90a") expected.emplace_back("hopper");
            if (is("attention")) expected.emplace_back("attention");
            if (is("convolution")) expected.emplace_back("convolutions");
            if (is("products") || is("convolution") || is("attention")) {
              expected.emplace_back("products");
            }
            if (is("groups")) expected.emplace_back("groups");
            if (memory) expected.emplace_back("streams");
            if (memory && is("softmax")) expected.emplace_back("rows");
            if (is("scan")) expected.emplace_back("scans");
          } else {
            expected = {"cores"};
            if (is("products") || is("convolution") || is("attention")) {
              expected.emplace_back("blocks");
            }
          }
          ASSERT_EQ(prompts.craft_for(subject), expected) << arch << " " << mask << " " << memory;
          ++seen;
        }
      }
    }
  }
  EXPECT_EQ(seen, 2 * 5 * 64 * 2);
}

TEST(Advice, ConditionsAreChecked) {
  const TempDir dir;
  const auto load = [&](const std::string& text) {
    EXPECT_TRUE(write_file(join(dir.path(), "hopper.md"), text));
    return Prompts::load(dir.path());
  };
  const auto moved = load("---\norder: 1\nwhen: target=cuda, kind=softmax\n---\nMine.\n");
  ASSERT_TRUE(moved) << moved.error().text();
  EXPECT_EQ(moved->craft_for({TargetKind::kCuda, std::nullopt, {"softmax"}, false}),
            (Names{"hopper", "gpu"}));
  const auto kept = load("Mine.\n");  // without front matter: where the embedded one belongs
  ASSERT_TRUE(kept) << kept.error().text();
  EXPECT_EQ(kept->craft_for({TargetKind::kCuda, Architecture{9, 0, 0}, {}, false}),
            (Names{"gpu", "hopper"}));
  for (const char* wrong : {"---\nwhen: colour=red\n---\n", "---\nwhen: arch=hopper\n---\n",
                            "---\nif: target=cuda\n---\n", "---\nwhen: target=cuda\n"}) {
    const auto refused = load(wrong);
    ASSERT_FALSE(refused) << wrong;
    EXPECT_TRUE(contains(refused.error().message, "hopper.md")) << refused.error().text();
  }
}

// Every text is chosen for some task, and none contains a field's name.
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
