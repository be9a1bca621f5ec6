// SPDX-License-Identifier: Apache-2.0
// The parts of the energy measurement that need no GPU; CudaEvaluatorTest.EnergyOfACall needs one.
#include "measure/cuda/energy.h"

#include <gtest/gtest.h>

#include <set>

namespace kernelpro {
namespace {

constexpr std::uint64_t kBase = 0x700000000000, kPage = 2 << 20;

AddressLayout layout() { return make_layout({1000, 5 << 20, 64}, 4096, kPage, kBase); }

TEST(EnergyCopies, LieSideBySide) {
  const AddressLayout one = layout();
  const AddressLayout wide = copies_layout(one, 3);
  ASSERT_EQ(wide.slots.size(), 3 * one.slots.size());
  std::set<std::uint64_t> starts;
  for (const AddressLayout::Slot& slot : wide.slots) {
    EXPECT_TRUE(starts.insert(slot.mapping).second);
    EXPECT_GE(slot.mapping, wide.base);
    EXPECT_LE(slot.mapping + slot.mapping_bytes, wide.base + wide.reserve_bytes);
    for (const AddressLayout::Slot& other : wide.slots) {
      if (&other == &slot) continue;
      EXPECT_TRUE(slot.mapping + slot.mapping_bytes <= other.mapping ||
                  other.mapping + other.mapping_bytes <= slot.mapping);
    }
  }
  const AddressLayout second = copy_layout(one, 3, 1);
  for (std::size_t i = 0; i < one.slots.size(); ++i) {
    EXPECT_EQ(wide.slots[one.slots.size() + i].address, second.slots[i].address);
    EXPECT_EQ(wide.slots[i].address, one.slots[i].address);
  }
}

TEST(EnergyCopies, PlansFollow) {
  const AddressLayout one = layout();
  LaunchPlan plan;
  PlanNode node;
  node.kind = PlanNode::Kind::kKernel;
  node.parameters = {{PlanParameter::Kind::kTensor, 1, 256, ""},
                     {PlanParameter::Kind::kWorkspace, 0, 64, ""},
                     {PlanParameter::Kind::kBytes, 0, 0, "abcd"}};
  plan.nodes = {node};
  const AddressLayout wide = copies_layout(one, 4);
  for (int copy = 0; copy < 4; ++copy) {
    const LaunchPlan moved = plan_for_copy(plan, one, copy);
    const AddressLayout part = copy_layout(one, 4, copy);
    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(parameter_bytes(moved.nodes[0].parameters[i], wide),
                parameter_bytes(plan.nodes[0].parameters[i], part))
          << copy << " " << i;
    }
  }
}

TEST(EnergyCopies, AreMoreThanTheCacheHolds) {
  EXPECT_EQ(copies_wanted(200e6, 50e6, 8), 1) << "one alone is larger";
  EXPECT_EQ(copies_wanted(30e6, 50e6, 8), 4);
  EXPECT_EQ(copies_wanted(1e6, 50e6, 8), 8) << "no more than there are";
  EXPECT_EQ(copies_wanted(0, 50e6, 0), 1);
}

}  // namespace
}  // namespace kernelpro
