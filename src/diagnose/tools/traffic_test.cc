// SPDX-License-Identifier: Apache-2.0
#include "diagnose/tools/traffic.h"

#include <gtest/gtest.h>

namespace kernelpro {
namespace {

// Facts together with the evidence they refer to.
struct Kernel {
  Evidence evidence;
  Roofline roof;
  std::optional<KernelModel> model;

  Kernel& with(const std::string& name, double value) {
    evidence.set(name, value, Level::kCounters, "cupti");
    return *this;
  }
  Facts facts() {
    model.emplace(evidence, nullptr, roof);
    return {evidence, nullptr, roof, *model};
  }
};

constexpr const char* kLoadRequests = "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum";
constexpr const char* kLoadSectors = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum";
constexpr const char* kStoreRequests = "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum";
constexpr const char* kStoreSectors = "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum";

TEST(Traffic, TheIdealFollowsTheWidths) {
  Kernel k;
  k.with(kLoadRequests, 100).with(kLoadSectors, 1600).with("sass.hot.global_loads", 4);
  k.with("sass.hot.global_loads_128", 4);
  EXPECT_DOUBLE_EQ(global_loads(k.facts())->excess(), 1);
  k.with("sass.hot.global_loads_128", 0).with("sass.hot.global_loads_32", 4);
  EXPECT_DOUBLE_EQ(global_loads(k.facts())->excess(), 4);
  k.with("sass.hot.global_loads_32", 0).with("sass.hot.global_loads_narrow", 4);
  EXPECT_DOUBLE_EQ(global_loads(k.facts())->ideal_per_request(), 2);
}

TEST(Traffic, WithoutWidthsOnlyTheWidestAccessIsHeldAgainstIt) {
  Kernel k;
  k.with(kLoadRequests, 100).with(kLoadSectors, 1600);
  EXPECT_DOUBLE_EQ(global_loads(k.facts())->excess(), 1);
  k.with(kLoadSectors, 3200);
  EXPECT_DOUBLE_EQ(global_loads(k.facts())->excess(), 2);
}

TEST(Traffic, OneAddressForAllLanesIsNoWaste) {
  Kernel k;
  k.with(kLoadRequests, 100).with(kLoadSectors, 100).with("sass.hot.global_loads", 1);
  k.with("sass.hot.global_loads_32", 1);
  EXPECT_DOUBLE_EQ(worst_excess(k.facts()), 1);
}

TEST(Traffic, AFewScatteredStoresDoNotCount) {
  Kernel k;
  k.with(kLoadRequests, 1e6).with(kLoadSectors, 4e6).with("sass.hot.global_loads", 1);
  k.with("sass.hot.global_loads_32", 1).with("sass.hot.global_stores", 1);
  k.with(kStoreRequests, 1e3).with(kStoreSectors, 32e3);
  EXPECT_DOUBLE_EQ(worst_excess(k.facts()), 1);
  k.with(kStoreRequests, 1e6).with(kStoreSectors, 32e6);
  EXPECT_DOUBLE_EQ(worst_excess(k.facts()), 8);
}

TEST(Traffic, ElementsOfAThreadsOwnChunkFillTheGaps) {
  Kernel k;
  k.with(kLoadRequests, 100).with(kLoadSectors, 1600).with("sass.hot.global_loads", 4);
  k.with("sass.hot.global_loads_32", 4).with("sass.hot.global_strided", 4);
  k.with("sass.hot.global_lane_stride", 16);
  EXPECT_DOUBLE_EQ(worst_excess(k.facts()), 4);
  k.with("sass.hot.global_strided_filled", 4);
  EXPECT_DOUBLE_EQ(worst_excess(k.facts()), 1);
  k.with("sass.hot.global_lane_stride", 32);  // more than one access holds
  EXPECT_DOUBLE_EQ(worst_excess(k.facts()), 4);
}

TEST(Traffic, CompulsoryBytesAreTheCallsNotAPartsOfIt) {
  Kernel k;
  k.with("task.compulsory_bytes", 300).with("task.output_bytes", 100);
  ASSERT_TRUE(compulsory(k.facts()));
  EXPECT_DOUBLE_EQ(compulsory(k.facts())->reads, 200);
  k.with("kernel.share", 0.5);
  EXPECT_FALSE(compulsory(k.facts()));
}

TEST(Traffic, AtomicsAndStoresAreNoReads) {
  Kernel k;
  k.with("lts__t_sectors_srcunit_tex.sum", 1000).with(kStoreSectors, 300);
  k.with("lts__t_sectors_srcunit_tex_op_red.sum", 200);
  EXPECT_DOUBLE_EQ(*l2_read_bytes(k.facts()), 500 * kSectorBytes);
}

TEST(Traffic, LittlesLaw) {
  Kernel k;
  k.with("ceiling.copy_bandwidth", 4.2e12).with("machine.parallel_units", 132);
  EXPECT_NEAR(*needed_in_flight(k.facts()), 22e3, 1e3);
  k.with("sass.hot.global_bytes_in_flight", 16);
  k.with("smsp__warps_active.avg.per_cycle_active", 8);
  EXPECT_DOUBLE_EQ(*in_flight(k.facts()), 16 * 32 * 32);
}

TEST(Traffic, WarpsFollowFromTheLaunchWithoutCounters) {
  Kernel k;
  k.with("machine.parallel_units", 132).with("launch__block_size", 256);
  k.with("launch__grid_size", 1320).with("launch__waves_per_multiprocessor", 5);
  EXPECT_DOUBLE_EQ(*resident_warps(k.facts()), 16);
  k.with("launch__grid_size", 132).with("launch__waves_per_multiprocessor", 0.5);
  EXPECT_DOUBLE_EQ(*resident_warps(k.facts()), 8);
}

TEST(Traffic, SharedMemorysPartOfTheDataPipe) {
  Kernel k;
  k.with("l1tex__data_pipe_lsu_wavefronts.avg.pct_of_peak_sustained_elapsed", 50);
  k.with("gpc__cycles_elapsed.max", 1000).with("machine.parallel_units", 10);
  EXPECT_DOUBLE_EQ(shared_part(k.facts()), 0);
  k.with("l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum", 4000);
  k.with("l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum", 0);
  EXPECT_DOUBLE_EQ(shared_part(k.facts()), 0.8);
}

TEST(Traffic, TheUpperGainLeavesRoom) {
  Kernel k;
  k.with("lts__t_sectors.avg.pct_of_peak_sustained_elapsed", 85);
  k.with("gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed", 10);
  Finding finding;
  set_gain(k.facts(), Effect().scale(Resource::kL2, 0.5), &finding);
  EXPECT_NEAR(finding.likely_speedup, 2, 0.01);
  EXPECT_NEAR(finding.upper_speedup, 4.8,
              0.01);  // improved resources twice as far, and a fifth of slack
}

TEST(Traffic, WithoutATaskWhatIsAllocatedBoundsTheNeed) {
  Kernel k;
  EXPECT_FALSE(compulsory_at_most(k.facts()));
  k.with("trace.allocated_bytes", 1000 * 32).with(kStoreSectors, 400);
  EXPECT_FALSE(compulsory(k.facts()));
  EXPECT_DOUBLE_EQ(compulsory_at_most(k.facts())->bytes, 32000);
  EXPECT_DOUBLE_EQ(compulsory_at_most(k.facts())->reads, 600 * 32);
  k.with("kernel.launches", 2);
  EXPECT_DOUBLE_EQ(compulsory_at_most(k.facts())->reads, 1600 * 32);
  // It stores nearly everything, so it works in place.
  k.with("kernel.launches", 1).with(kStoreSectors, 1000);
  EXPECT_DOUBLE_EQ(compulsory_at_most(k.facts())->reads, 32000);
  // Its code shows it.
  k.with(kStoreSectors, 400).with("sass.hot.global_updates", 1);
  EXPECT_DOUBLE_EQ(compulsory_at_most(k.facts())->reads, 32000);
  k.with("sass.hot.global_updates", 0).with("sass.bulk_copies", 2);
  EXPECT_DOUBLE_EQ(compulsory_at_most(k.facts())->reads, 32000);
  k.with("kernel.share", 0.5);
  EXPECT_FALSE(compulsory_at_most(k.facts()));
  k.with("kernel.share", 1).with("task.compulsory_bytes", 500);
  EXPECT_DOUBLE_EQ(compulsory_at_most(k.facts())->bytes, 500);
}

}  // namespace
}  // namespace kernelpro
