// SPDX-License-Identifier: Apache-2.0
#include "profile/collect/plan_facts.h"

#include <gtest/gtest.h>

#include <cstring>

#include "core/evidence/metrics.h"

namespace kernelpro {
namespace {

constexpr std::uint64_t kMiB = 1 << 20;

// An input and an output of 64 MiB each, and 256 MiB of workspace.
PlanMemory memory_of_test() {
  PlanMemory memory;
  memory.layout = make_layout({64 * kMiB, 64 * kMiB}, 256 * kMiB, 2 * kMiB, 1ull << 40);
  memory.inputs = {true, false, false};
  return memory;
}

struct Address {
  int slot;
  std::uint64_t offset = 0;
};

PlanParameter captured(const PlanMemory& memory, Address a) {
  const std::uint64_t address =
      memory.layout.slots[static_cast<std::size_t>(a.slot)].address + a.offset;
  PlanParameter p;
  p.bytes.assign(reinterpret_cast<const char*>(&address), sizeof address);
  return p;
}

PlanNode kernel(const PlanMemory& memory, const std::string& function,
                const std::vector<Address>& addresses, std::uint32_t blocks = 16) {
  PlanNode n;
  n.kind = PlanNode::Kind::kKernel;
  n.function = function;
  n.grid = {blocks, 1, 1};
  n.block = {256, 1, 1};
  for (const Address& a : addresses) n.parameters.push_back(captured(memory, a));
  return n;
}

void chain(LaunchPlan* plan) {
  for (int i = 0; i + 1 < static_cast<int>(plan->nodes.size()); ++i) {
    plan->edges.push_back({i, i + 1});
  }
}

constexpr int kIn = 0, kOut = 1, kWork = 2;
constexpr const char* kMap = "_Z3mapPKfPf";               // map(float const*, float*)
constexpr const char* kZip = "_Z3zipPKfS0_Pf";            // zip(float const*, float const*, float*)
constexpr const char* kTwo = "_Z3twoPKfPfS1_";            // two(float const*, float*, float*)
constexpr const char* kPack = "_Z4packI6float4EvPKT_Pf";  // a template

TEST(PlanFacts, AChainHandsItsBuffersOver) {
  const PlanMemory m = memory_of_test();
  LaunchPlan plan;
  plan.nodes = {kernel(m, kMap, {{kIn}, {kWork}}), kernel(m, kPack, {{kWork}, {kWork, 64 * kMiB}}),
                kernel(m, kMap, {{kWork, 64 * kMiB}, {kOut}})};
  chain(&plan);
  const PlanFacts facts = plan_facts(plan, m);
  for (const auto& [name, value] : facts.call) EXPECT_NE(find_metric(name), nullptr) << name;
  EXPECT_EQ(facts.call.at("plan.kernels"), 3);
  EXPECT_EQ(facts.call.at("plan.levels"), 3);
  EXPECT_EQ(facts.call.at("plan.data_levels"), 3);
  EXPECT_EQ(facts.call.at("plan.handovers"), 2);
  EXPECT_EQ(facts.call.at("plan.consumers"), 2);
  EXPECT_EQ(facts.call.at("plan.handover_summed"), 0);
  EXPECT_EQ(facts.call.at("plan.handover_in_l2"), 0);
  // The first buffer ends where the second begins, the second with the workspace.
  EXPECT_EQ(facts.call.at("plan.handover_bytes"), 2.0 * (64 + 192) * kMiB);
  EXPECT_EQ(facts.kernels.at(kMap).at("kernel.launches"), 2);
  EXPECT_EQ(facts.kernels.at(kMap).at("kernel.concurrent"), 0);
}

// A statistic of a result, made by a kernel of its own, before the result is read.
TEST(PlanFacts, WhatAlsoWaitsForASummaryIsToldApart) {
  PlanMemory m = memory_of_test();
  const Address sums{kWork, 192 * kMiB}, scale{kWork, 224 * kMiB};
  LaunchPlan plan;
  plan.nodes = {kernel(m, kTwo, {{kIn}, {kWork}, sums}), kernel(m, kMap, {sums, scale}),
                kernel(m, kZip, {{kWork}, scale, {kOut}})};
  chain(&plan);
  m.written[kMap] = 1e3;
  const PlanFacts facts = plan_facts(plan, m);
  EXPECT_GT(facts.call.at("plan.handover_summed"), 0);
  EXPECT_LT(facts.call.at("plan.handover_summed"), facts.call.at("plan.handover_bytes"));
  double handed = 0;
  for (const auto& [name, values] : facts.kernels) {
    if (values.count("kernel.handed_bytes") > 0) handed += values.at("kernel.handed_bytes");
  }
  EXPECT_EQ(handed, facts.call.at("plan.handover_bytes"));
}

// A kernel that receives the whole workspace but writes little of it.
TEST(PlanFacts, NoMoreIsHandedOverThanWasWritten) {
  PlanMemory m = memory_of_test();
  LaunchPlan plan;
  plan.nodes = {kernel(m, kMap, {{kIn}, {kWork}}), kernel(m, kZip, {{kIn}, {kWork}, {kOut}})};
  chain(&plan);
  EXPECT_EQ(plan_facts(plan, m).call.at("plan.handover_bytes"), 2.0 * 256 * kMiB);
  m.written[kMap] = 157e3;
  const PlanFacts facts = plan_facts(plan, m);
  EXPECT_EQ(facts.call.at("plan.handover_bytes"), 2 * 157e3);
  EXPECT_EQ(facts.call.at("plan.handover_largest"), 157e3);
  EXPECT_EQ(facts.call.at("plan.handover_in_l2"), 2 * 157e3) << "L2 keeps it";
  EXPECT_EQ(facts.call.at("plan.handovers"), 1);
  m.written[kMap] = 1e12;
  EXPECT_EQ(plan_facts(plan, m).call.at("plan.handover_bytes"), 2.0 * 256 * kMiB);
}

TEST(PlanFacts, BranchesThatExchangeNothingCouldRunTogether) {
  const PlanMemory m = memory_of_test();
  LaunchPlan plan;
  for (std::uint64_t i = 0; i < 4; ++i) {
    plan.nodes.push_back(kernel(m, kMap, {{kIn}, {kWork, i * 64 * kMiB}}));
  }
  plan.nodes.push_back(
      kernel(m, "_Z3sumPKfS0_S0_S0_Pf",
             {{kWork}, {kWork, 64 * kMiB}, {kWork, 128 * kMiB}, {kWork, 192 * kMiB}, {kOut}}));
  LaunchPlan serial = plan;
  chain(&serial);
  const PlanFacts in_line = plan_facts(serial, m);
  EXPECT_EQ(in_line.call.at("plan.levels"), 5);
  EXPECT_EQ(in_line.call.at("plan.data_levels"), 2);
  EXPECT_EQ(in_line.call.at("plan.median_blocks"), 16);
  EXPECT_EQ(in_line.kernels.at(kMap).at("kernel.concurrent"), 0);
  LaunchPlan forked = plan;
  for (int i = 0; i < 4; ++i) forked.edges.push_back({i, 4});
  const PlanFacts side_by_side = plan_facts(forked, m);
  EXPECT_EQ(side_by_side.call.at("plan.levels"), 2);
  EXPECT_EQ(side_by_side.kernels.at(kMap).at("kernel.concurrent"), 1);
  EXPECT_EQ(side_by_side.kernels.at("_Z3sumPKfS0_S0_S0_Pf").at("kernel.concurrent"), 0);
}

// Chunks of one output, selected by an index: their independence is invisible, but they must not be
// mistaken for a chain that hands over the whole output.
TEST(PlanFacts, ChunksOfOneBufferAreNoChain) {
  const PlanMemory m = memory_of_test();
  LaunchPlan plan;
  for (int i = 0; i < 8; ++i) plan.nodes.push_back(kernel(m, kMap, {{kIn}, {kOut}}));
  chain(&plan);
  const PlanFacts facts = plan_facts(plan, m);
  EXPECT_EQ(facts.call.at("plan.data_levels"), 8);
  EXPECT_EQ(facts.call.at("plan.handover_bytes"), 0);
}

TEST(PlanFacts, InPlaceStepsHandOverWhatTheyRewrite) {
  const PlanMemory m = memory_of_test();
  LaunchPlan plan;
  plan.nodes = {kernel(m, kMap, {{kIn}, {kOut}}), kernel(m, "_Z4reluPf", {{kOut}})};
  chain(&plan);
  const PlanFacts facts = plan_facts(plan, m);
  EXPECT_EQ(facts.call.at("plan.handovers"), 1);
  EXPECT_EQ(facts.call.at("plan.handover_bytes"), 2.0 * 64 * kMiB);
}

// Without types (extern "C"), anything that is not an input may be written: dependences stay,
// inputs do not become handovers.
TEST(PlanFacts, NamesWithoutTypesAreTakenWithCare) {
  const PlanMemory m = memory_of_test();
  LaunchPlan plan;
  plan.nodes = {kernel(m, "first", {{kIn}, {kWork}}), kernel(m, "second", {{kIn}, {kOut}}),
                kernel(m, "third", {{kWork}, {kOut}})};
  chain(&plan);
  const PlanFacts facts = plan_facts(plan, m);
  EXPECT_EQ(facts.call.at("plan.data_levels"), 2);
  EXPECT_EQ(facts.call.at("plan.consumers"), 1);
}

TEST(PlanFacts, AKernelOfUnknownEffectKeepsItsPlace) {
  const PlanMemory m = memory_of_test();
  LaunchPlan plan;
  plan.nodes = {kernel(m, kMap, {{kIn}, {kWork}}), kernel(m, "_Z5countPKf", {{kIn}}),
                kernel(m, kMap, {{kIn}, {kOut}})};
  chain(&plan);
  EXPECT_EQ(plan_facts(plan, m).call.at("plan.data_levels"), 3);
}

TEST(PlanFacts, CopiesAndMemsetsAreCounted) {
  const PlanMemory m = memory_of_test();
  LaunchPlan plan;
  PlanNode set;
  set.kind = PlanNode::Kind::kMemset;
  set.destination = captured(m, {kOut});
  set.width = 1024;
  set.element_bytes = 4;
  PlanNode copy;
  copy.kind = PlanNode::Kind::kMemcpy;
  copy.source = captured(m, {kIn});
  copy.destination = captured(m, {kWork});
  copy.width = 4096;
  copy.height = 2;
  plan.nodes = {set, copy, kernel(m, kZip, {{kIn}, {kWork}, {kOut}})};
  chain(&plan);
  const PlanFacts facts = plan_facts(plan, m);
  EXPECT_EQ(facts.call.at("plan.memsets"), 1);
  EXPECT_EQ(facts.call.at("plan.memset_bytes"), 4096);
  EXPECT_EQ(facts.call.at("plan.memcpys"), 1);
  EXPECT_EQ(facts.call.at("plan.memcpy_bytes"), 8192);
  EXPECT_EQ(facts.call.at("plan.levels"), 3);
  EXPECT_EQ(facts.call.at("plan.data_levels"), 2);  // the memset and the copy are independent
  EXPECT_EQ(facts.call.at("plan.handovers"), 0);
}

// Pointers inside structures, as in CUTLASS-like kernels.
TEST(PlanFacts, PointersInStructuresAreFound) {
  const PlanMemory m = memory_of_test();
  LaunchPlan plan;
  plan.nodes = {kernel(m, "_Z1a6Params", {}), kernel(m, "_Z1b6Params", {})};
  for (int i = 0; i < 2; ++i) {
    PlanParameter all;
    all.bytes = std::string(8, '\1') + captured(m, {i == 0 ? kIn : kWork}).bytes +
                captured(m, {i == 0 ? kWork : kOut}).bytes;
    plan.nodes[static_cast<std::size_t>(i)].parameters = {all};
  }
  chain(&plan);
  EXPECT_EQ(plan_facts(plan, m).call.at("plan.handovers"), 1);
}

TEST(PlanFacts, BadPlansGiveNothing) {
  const PlanMemory m = memory_of_test();
  LaunchPlan plan;
  EXPECT_TRUE(plan_facts(plan, m).call.empty());
  plan.nodes = {kernel(m, kMap, {{kIn}, {kOut}}), kernel(m, kMap, {{kIn}, {kOut}})};
  plan.edges = {{0, 1}, {1, 0}};
  EXPECT_TRUE(plan_facts(plan, m).call.empty());
  plan.edges.clear();
  const PlanFacts without = plan_facts(plan, {});
  EXPECT_EQ(without.call.at("plan.kernels"), 2);
  EXPECT_EQ(without.call.count("plan.handovers"), 0u);
}

}  // namespace
}  // namespace kernelpro
