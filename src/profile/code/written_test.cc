// SPDX-License-Identifier: Apache-2.0
#include "profile/code/written.h"

#include <gtest/gtest.h>

namespace kernelpro {
namespace {

constexpr const char* kStores = "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum";

// One launch of 4 blocks of 256 threads.
double most(const std::map<std::string, double>& facts) {
  LaunchPlan plan;
  PlanNode n;
  n.kind = PlanNode::Kind::kKernel;
  n.function = "f";
  n.grid = {4, 1, 1};
  n.block = {32, 8, 1};
  plan.nodes = {n};
  std::map<std::string, KernelEvidence> kernels;
  for (const auto& [name, value] : facts) {
    kernels["f"].facts.set(name, value, Level::kStatic, "test");
  }
  const auto written = most_written(plan, kernels, 4e12);
  return written.contains("f") ? written.at("f") : -1;
}

TEST(Written, StoresAreCounted) {
  EXPECT_EQ(most({{kStores, 100}, {"sass.bulk_copies", 0}, {"sass.global_atomics", 0}}), 3200);
  EXPECT_EQ(most({{kStores, 100},
                  {"sass.bulk_copies", 0},
                  {"sass.global_atomics", 1},
                  {"lts__t_sectors_srcunit_tex_op_atom.sum", 10},
                  {"lts__t_sectors_srcunit_tex_op_red.sum", 0}}),
            3520);
}

TEST(Written, WhatPassesTheCountersByBoundsNothing) {
  EXPECT_EQ(most({{kStores, 100}, {"sass.bulk_copies", 1}, {"sass.global_atomics", 0}}), -1);
  EXPECT_EQ(most({{kStores, 100}, {"sass.bulk_copies", 0}, {"sass.global_atomics", 1}}), -1);
  EXPECT_EQ(most({{kStores, 100}}), -1) << "the code is not known";
  EXPECT_EQ(most({}), -1);
}

TEST(Written, CodeWithoutLoopsStoresOnce) {
  std::map<std::string, double> code = {{"sass.loops", 0},
                                        {"sass.calls", 0},
                                        {"sass.global_atomics", 0},
                                        {"sass.bulk_copies", 0},
                                        {"sass.global_stores", 2}};
  EXPECT_EQ(most(code), 1024 * 16 * 2);
  code["sass.loops"] = 1;
  EXPECT_EQ(most(code), -1);
}

TEST(Written, TimeBoundsAllElse) {
  // 2 us at L2 speed; 100 us at memory speed.
  EXPECT_DOUBLE_EQ(most({{"gpu__time_duration.sum", 2e3}}), 20e6);
  EXPECT_DOUBLE_EQ(most({{"gpu__time_duration.sum", 100e3}}), 400e6);
  EXPECT_DOUBLE_EQ(most({{"gpu__time_duration.sum", 5e3}}), 24e6);
}

TEST(Written, TheLeastCounts) {
  EXPECT_EQ(most({{"gpu__time_duration.sum", 3e3},
                  {kStores, 4906},
                  {"sass.bulk_copies", 0},
                  {"sass.global_atomics", 0}}),
            4906 * 32);
}

}  // namespace
}  // namespace kernelpro
