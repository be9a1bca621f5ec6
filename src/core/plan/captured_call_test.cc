// SPDX-License-Identifier: Apache-2.0
// Which words of a captured call are addresses, found by capturing it twice.
#include "core/plan/captured_call.h"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>

#include "base/text.h"

namespace kernelpro {
namespace {

constexpr std::uint64_t kTensors = 0x200000000000ull, kHeld = 0x5b0000000000ull;
constexpr std::uint64_t kMiB = 1ull << 20;

std::string words(const std::vector<std::uint64_t>& all) {
  return std::string(reinterpret_cast<const char*>(all.data()), all.size() * 8);
}
std::vector<std::uint64_t> words_of(const std::string& bytes) {
  std::vector<std::uint64_t> all(bytes.size() / 8);
  std::memcpy(all.data(), bytes.data(), all.size() * 8);
  return all;
}
PlanParameter raw(std::string bytes) {
  PlanParameter parameter;
  parameter.bytes = std::move(bytes);
  return parameter;
}

// A call whose one kernel has one parameter, a struct.
struct Captured : CapturedCall {
  Captured(bool second, const std::string& parameter) {
    tensors = {kTensors + (second ? 0x40000000000ull : 0), 64 * kMiB};
    scratch = {second ? 0x360000000000ull : kTensors + kScratchOffset, 4 * kMiB};
    PlanNode node;
    node.kind = PlanNode::Kind::kKernel;
    node.function = "k";
    node.parameters = {raw(parameter)};
    plan.nodes = {node};
  }
  void hold(std::uint64_t address, std::uint64_t bytes, const std::string& content) {
    held.push_back({{address, bytes}, content, content.empty() ? "" : content + ".bin"});
  }
};

std::vector<std::uint64_t> paired(const Captured& first, const Captured& second) {
  const Result<LaunchPlan> plan = plan_of_captures(first, second);
  EXPECT_TRUE(plan) << plan.error().text();
  return plan ? words_of(plan->nodes[0].parameters[0].bytes) : std::vector<std::uint64_t>();
}
std::string difference(const Captured& first, const Captured& second) {
  const Result<LaunchPlan> plan = plan_of_captures(first, second);
  return plan ? "none" : plan.error().message;
}

TEST(CapturedCall, WhatMovesWithABufferIsAnAddressInIt) {
  Captured first(false, ""), second(true, "");
  const std::uint64_t looks_like_one = kTensors + 640;  // a pair of integers: 640 and 8192
  first.plan.nodes[0].parameters = {
      raw(words({kTensors + 4096, (kTensors + kScratchOffset) + 512, looks_like_one, 17}))};
  second.plan.nodes[0].parameters = {raw(
      words({second.tensors.address + 4096, second.scratch.address + 512, looks_like_one, 17}))};
  EXPECT_EQ(paired(first, second),
            (std::vector<std::uint64_t>{kTensors + 4096, (kTensors + kScratchOffset) + 512,
                                        looks_like_one, 17}));
}

TEST(CapturedCall, PaddingMayDiffer) {
  const Captured first(false, words({1, 0xdeadbeef}) + "abc"),
      second(true, words({1, 0x7f0012345678}) + "xyz");
  EXPECT_EQ(paired(first, second), (std::vector<std::uint64_t>{1, 0xdeadbeef}));
}

// The same bytes after two captures with other inputs and parameters: computed from neither.
TEST(CapturedCall, TablesOfTheModuleBecomeConstants) {
  Captured first(false, words({kHeld + 16, 5})), second(true, words({kHeld + kMiB + 16, 5}));
  first.hold(kHeld, 1000, "table");
  second.hold(kHeld + kMiB, 1000, "table");
  const auto plan = plan_of_captures(first, second);
  ASSERT_TRUE(plan) << plan.error().text();
  ASSERT_EQ(plan->constants.size(), 1u);
  EXPECT_EQ(plan->constants[0].offset, 4 * kMiB) << "after what the call allocates";
  EXPECT_EQ(plan->constants[0].bytes, 1000u);
  EXPECT_EQ(plan->constants[0].file, "table.bin");
  EXPECT_EQ(plan->scratch_bytes, 4 * kMiB + 1000);
  EXPECT_EQ(words_of(plan->nodes[0].parameters[0].bytes),
            (std::vector<std::uint64_t>{(kTensors + kScratchOffset) + 4 * kMiB + 16, 5}));
  EXPECT_EQ(plan->problem(), "");
}

TEST(CapturedCall, BuffersWhoseContentsDependOnTheDataComeWithoutThem) {
  Captured first(false, words({kHeld, kHeld + 2 * kMiB})),
      second(true, words({kHeld + kMiB, kHeld + 2 * kMiB}));
  first.hold(kHeld, 1000, "one");
  first.hold(kHeld + 2 * kMiB, 64, "");  // too large to be read
  second.hold(kHeld + kMiB, 1000, "other");
  second.hold(kHeld + 2 * kMiB, 64, "");
  const auto plan = plan_of_captures(first, second);
  ASSERT_TRUE(plan) << plan.error().text();
  EXPECT_TRUE(plan->constants.empty());
  EXPECT_EQ(plan->scratch_bytes, 4 * kMiB + 1024 + 64) << "aligned to 512";
}

TEST(CapturedCall, CopiesAndMemsetsMustMoveToo) {
  Captured first(false, words({1})), second(true, words({1}));
  PlanNode copy;
  copy.kind = PlanNode::Kind::kMemcpy;
  copy.width = 64;
  copy.source = raw(words({kTensors}));
  copy.destination = raw(words({(kTensors + kScratchOffset) + 512}));
  first.plan.nodes.push_back(copy);
  copy.source = raw(words({second.tensors.address}));
  copy.destination = raw(words({second.scratch.address + 512}));
  second.plan.nodes.push_back(copy);
  EXPECT_EQ(difference(first, second), "none");
  second.plan.nodes[1].destination = raw(words({second.scratch.address + 1024}));
  EXPECT_TRUE(contains(difference(first, second), "address of a copy"))
      << difference(first, second);
  second.plan.nodes[1] = copy;
  second.plan.nodes[1].width = 32;
  EXPECT_TRUE(contains(difference(first, second), "a copy or memset"));
}

TEST(CapturedCall, OtherLaunchesAreRefused) {
  const Captured first(false, words({1}));
  const auto changed = [&](const std::function<void(LaunchPlan*)>& change) {
    Captured second(true, words({1}));
    change(&second.plan);
    return difference(first, second);
  };
  EXPECT_EQ(changed([](LaunchPlan*) {}), "none");
  EXPECT_TRUE(contains(changed([](LaunchPlan* p) { p->nodes[0].grid[0] = 2; }), "the launch of k"));
  EXPECT_TRUE(contains(changed([](LaunchPlan* p) { p->nodes[0].image = 1; }), "the launch of k"));
  EXPECT_TRUE(contains(changed([](LaunchPlan* p) { p->nodes.push_back(p->nodes[0]); }), "steps"));
  EXPECT_TRUE(contains(changed([](LaunchPlan* p) { p->nodes[0].parameters.clear(); }),
                       "the parameters of k"));
  EXPECT_TRUE(contains(changed([](LaunchPlan* p) {
                         p->edges.push_back({0, 0, 0, 0, 0});
                       }),
                       "wait"));
}

TEST(CapturedCall, SurvivesJson) {
  Captured call(false, words({kTensors, 5}));
  call.hold(kHeld, 1000, "table");
  const std::string json = captured_call_to_json(call);
  const auto back = captured_call_from_json(json);
  ASSERT_TRUE(back);
  EXPECT_EQ(captured_call_to_json(*back), json);
  for (const char* text : {"", "[]", "{}", R"({"plan":{},"tensors":[1],"scratch":[1,2]})",
                           R"({"plan":{},"tensors":[1,2],"scratch":[1,-2]})",
                           R"({"plan":{},"tensors":[1,2],"scratch":[1,2],"held":[{}]})"}) {
    EXPECT_FALSE(captured_call_from_json(text)) << text;
  }
}

}  // namespace
}  // namespace kernelpro
