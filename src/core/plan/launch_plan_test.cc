// SPDX-License-Identifier: Apache-2.0
#include "core/plan/launch_plan.h"

#include <gtest/gtest.h>

#include <cstring>
#include <set>

namespace kernelpro {
namespace {

PlanNode kernel(const std::string& name) {
  PlanNode n;
  n.kind = PlanNode::Kind::kKernel;
  n.function = name;
  return n;
}

LaunchPlan sample() {
  LaunchPlan plan;
  PlanNode k = kernel("_Z1kPf");
  k.grid = {7, 2, 1};
  k.block = {256, 1, 1};
  k.cluster = {2, 1, 1};
  k.dynamic_shared = 100'000;
  k.max_dynamic_shared = 100'000;
  k.cooperative = true;
  k.parameters = {{PlanParameter::Kind::kTensor, 1, 64, ""},
                  {PlanParameter::Kind::kBytes, 0, 0, std::string("\0\xff\x10", 3)},
                  {PlanParameter::Kind::kWorkspace, 0, 8, ""}};
  PlanNode set;
  set.kind = PlanNode::Kind::kMemset;
  set.destination = {PlanParameter::Kind::kTensor, 0, 0, ""};
  set.width = 128;
  set.value = 3;
  set.element_bytes = 4;
  plan.nodes = {set, k, PlanNode{}};
  plan.edges = {{0, 1, 0, 0, 0}, {1, 2, 1, 0, 1}};
  return plan;
}

TEST(LaunchPlan, SurvivesJson) {
  const LaunchPlan plan = sample();
  const std::string json = plan_to_json(plan);
  const auto back = plan_from_json(json);
  ASSERT_TRUE(back);
  EXPECT_EQ(plan_to_json(*back), json);
  EXPECT_EQ(back->nodes[1].parameters[1].bytes, plan.nodes[1].parameters[1].bytes);
  EXPECT_EQ(back->edges[1].from_port, 1);
  EXPECT_EQ(back->problem(), "");
}

TEST(LaunchPlan, HostileTextIsRefused) {
  for (const char* text :
       {"", "[]", "{\"nodes\":[{\"kind\":\"host\"}]}",
        "{\"nodes\":[{\"kind\":\"kernel\",\"grid\":[1,2]}]}", "{\"nodes\":[],\"edges\":[[0,1]]}",
        "{\"nodes\":[],\"edges\":[[0,1,0,0,99999999999]]}",
        "{\"nodes\":[{\"kind\":\"kernel\",\"grid\":[1,1,1],\"block\":[1,1,1],"
        "\"cluster\":[0,0,0],\"parameters\":[{\"bytes\":\"zz\"}]}]}"}) {
    const auto plan = plan_from_json(text);
    EXPECT_TRUE(!plan || !plan->problem().empty()) << text;
  }
}

TEST(LaunchPlan, ProblemsAreNamed) {
  LaunchPlan plan = sample();
  plan.edges.push_back({2, 0, 0, 0, 0});
  EXPECT_EQ(plan.problem(), "a cycle of dependencies");
  plan = sample();
  plan.edges.push_back({0, 9, 0, 0, 0});
  EXPECT_EQ(plan.problem(), "an edge to nowhere");
  plan = sample();
  plan.nodes[1].block = {1025, 1, 1};
  EXPECT_NE(plan.problem(), "");
  plan = sample();
  plan.edges.assign(10'000, plan.edges[0]);
  EXPECT_NE(plan.problem().find("10000 dependencies"), std::string::npos) << plan.problem();
  plan.nodes.clear();
  plan.edges.clear();
  EXPECT_EQ(plan.problem(), "no kernel launch");
}

TEST(LaunchPlan, KnowsWhetherKernelsMayRunSideBySide) {
  LaunchPlan plan;
  plan.nodes = {kernel("a")};
  EXPECT_TRUE(plan.one_after_another());
  plan.nodes = {kernel("a"), kernel("b"), kernel("c")};
  EXPECT_FALSE(plan.one_after_another());
  plan.edges = {{0, 1, 0, 0, 0}, {1, 2, 0, 0, 0}};
  EXPECT_TRUE(plan.one_after_another());
  plan.edges = {{2, 0, 0, 0, 0}, {1, 2, 0, 0, 0}};
  EXPECT_TRUE(plan.one_after_another());
  plan.edges = {{0, 1, 0, 0, 0}, {0, 2, 0, 0, 0}};  // a fork
  EXPECT_FALSE(plan.one_after_another());
  plan.edges = {{0, 2, 0, 0, 0}, {1, 2, 0, 0, 0}};  // a join
  EXPECT_FALSE(plan.one_after_another());
  plan.edges = {{0, 1, 0, 0, 0}, {1, 2, 1, 0, 1}};  // starts before the previous one ends
  EXPECT_FALSE(plan.one_after_another());
}

TEST(AddressLayout, EndsAreFollowedByUnmappedMemory) {
  constexpr std::uint64_t kPage = 2 << 20;
  const AddressLayout layout = make_layout({100, kPage, kPage + 1}, 300, kPage, 1ull << 40);
  ASSERT_EQ(layout.slots.size(), 4u);
  EXPECT_TRUE(layout.has_workspace);
  std::uint64_t last_end = layout.base;
  for (const auto& slot : layout.slots) {
    EXPECT_EQ(slot.address % 256, 0u);
    EXPECT_GE(slot.mapping, last_end + kPage) << "no gap before the slot";
    const std::uint64_t end = slot.mapping + slot.mapping_bytes;
    EXPECT_GE(slot.address, slot.mapping);
    EXPECT_LE(slot.address + slot.bytes, end);
    EXPECT_LT(end - (slot.address + slot.bytes), 256u) << "the tensor does not end at the edge";
    EXPECT_LT(end, layout.base + layout.reserve_bytes);
    last_end = end;
  }
}

TEST(AddressLayout, IsTheSameElsewhere) {
  constexpr std::uint64_t kPage = 2ull << 20, kBase = 0x200000000000ull;
  const AddressLayout layout = make_layout({100, 40 * kPage, kPage + 1}, 300, kPage, kBase);
  std::set<std::uint64_t> bases, distances;
  for (std::uint64_t place = 1; place <= 200; ++place) {
    const AddressLayout moved = placed(layout, place);
    bases.insert(moved.base);
    distances.insert(moved.slots[1].address - moved.slots[0].address);
    EXPECT_GE(moved.base, kBase);
    EXPECT_LT(moved.base, kBase + (1ull << 42));
    EXPECT_EQ(moved.base % (64ull << 20), 0u) << "drivers place others elsewhere";
    EXPECT_TRUE(moved.has_workspace);
    std::uint64_t last_end = moved.base;
    for (std::size_t i = 0; i < layout.slots.size(); ++i) {
      const AddressLayout::Slot &was = layout.slots[i], &is = moved.slots[i];
      EXPECT_GE(is.mapping, last_end + kPage);
      EXPECT_EQ(is.mapping % kPage, 0u);
      EXPECT_EQ(is.mapping_bytes, was.mapping_bytes);
      EXPECT_EQ(is.bytes, was.bytes);
      EXPECT_EQ(is.address - is.mapping, was.address - was.mapping);
      last_end = is.mapping + is.mapping_bytes;
    }
    EXPECT_LE(last_end + kPage, moved.base + moved.reserve_bytes);
    EXPECT_EQ(placed(layout, place).slots[3].address, moved.slots[3].address);
    // Cases of one task lie at one base.
    EXPECT_EQ(placed(make_layout({7}, 0, kPage, kBase), place).base, moved.base);
  }
  EXPECT_GT(bases.size(), 190u);
  EXPECT_GT(distances.size(), 100u);
  EXPECT_EQ(placed(layout, 0).base, kBase);
}

TEST(AddressLayout, ParametersBecomeAddresses) {
  const AddressLayout layout = make_layout({1000, 2000}, 64, 4096, 1ull << 40);
  const auto address = [&](const PlanParameter& p) {
    std::uint64_t value;
    std::memcpy(&value, parameter_bytes(p, layout).data(), sizeof value);
    return value;
  };
  EXPECT_EQ(address({PlanParameter::Kind::kTensor, 1, 12, ""}), layout.slots[1].address + 12);
  EXPECT_EQ(address({PlanParameter::Kind::kWorkspace, -1, 8, ""}), layout.slots[2].address + 8);
  EXPECT_EQ(address({PlanParameter::Kind::kTensor, 2, 0, ""}), 0u) << "the workspace is no tensor";
  EXPECT_EQ(address({PlanParameter::Kind::kTensor, -1, 0, ""}), 0u);
}

}  // namespace
}  // namespace kernelpro
