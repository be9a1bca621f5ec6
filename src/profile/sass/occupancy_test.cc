// SPDX-License-Identifier: Apache-2.0
#include "profile/sass/occupancy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#if __has_include(<cuda_occupancy.h>)
#define KERNELPRO_HAVE_OCCUPANCY 1
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wunused-function"
#include <cuda_occupancy.h>
#pragma GCC diagnostic pop
#endif

namespace kernelpro {
namespace {

constexpr const char* kArchs[] = {"sm_70", "sm_75",  "sm_80",   "sm_86",   "sm_87",  "sm_89",
                                  "sm_90", "sm_90a", "sm_100a", "sm_103a", "sm_110", "sm_120a"};

TEST(Occupancy, KnowsItsArchitectures) {
  for (const char* arch : kArchs) EXPECT_NE(Architecture::parse(arch)->limits(), nullptr) << arch;
}

TEST(Occupancy, WhatLimitsItAndTheNextStep) {
  const SmLimits sm = *Architecture::parse("sm_90a")->limits();
  // 256 threads with 72 registers: 2304 a warp, 28 warps, 3 blocks.
  Occupancy o = occupancy(sm, {256, 72, 0});
  EXPECT_EQ(o.blocks, 3);
  EXPECT_EQ(o.by_registers, 3);
  EXPECT_EQ(o.registers_for_more, 64);
  EXPECT_DOUBLE_EQ(o.fraction, 24.0 / 64);
  EXPECT_EQ(occupancy(sm, {256, o.registers_for_more, 0}).blocks, 4);
  // 100 KB a block: two fit; three would with 75 KB.
  o = occupancy(sm, {128, 32, 100 * 1024});
  EXPECT_EQ(o.blocks, 2);
  EXPECT_EQ(o.by_shared, 2);
  EXPECT_EQ(o.shared_bytes_for_more, 75 * 1024);
  EXPECT_EQ(occupancy(sm, {128, 32, o.shared_bytes_for_more}).blocks, 3);
  EXPECT_EQ(occupancy(sm, {128, 32, o.shared_bytes_for_more + 1}).blocks, 2);
  // Tiny blocks: the number of blocks.
  o = occupancy(sm, {32, 16, 0});
  EXPECT_EQ(o.blocks, 32);
  EXPECT_EQ(o.by_blocks, 32);
  // More than a block may have.
  EXPECT_EQ(occupancy(sm, {128, 32, 228 * 1024}).blocks, 0);
  EXPECT_EQ(occupancy(sm, {1024, 80, 0}).blocks, 0);
}

#if KERNELPRO_HAVE_OCCUPANCY

cudaOccDeviceProp device_of(const std::string& arch, const SmLimits& sm) {
  const int number = std::stoi(arch.substr(3));
  cudaOccDeviceProp device;
  device.computeMajor = number / 10;
  device.computeMinor = number % 10;
  device.maxThreadsPerBlock = 1024;
  device.maxThreadsPerMultiprocessor = sm.warps * 32;
  device.regsPerBlock = sm.registers;
  device.regsPerMultiprocessor = sm.registers;
  device.warpSize = 32;
  device.sharedMemPerBlock = 48 * 1024;
  device.sharedMemPerMultiprocessor = static_cast<std::size_t>(sm.shared_bytes);
  device.numSms = 100;
  device.sharedMemPerBlockOptin = static_cast<std::size_t>(sm.shared_block_bytes);
  device.reservedSharedMemPerBlock = static_cast<std::size_t>(sm.shared_reserved_bytes);
  return device;
}

// Compares with the toolkit's calculator over all resource requirements of kernels.
TEST(Occupancy, AgreesWithTheToolkit) {
  int compared = 0;
  for (const char* arch : kArchs) {
    const SmLimits sm = *Architecture::parse(arch)->limits();
    const cudaOccDeviceProp device = device_of(arch, sm);
    for (int threads :
         {1, 32, 33, 64, 96, 128, 160, 192, 256, 288, 384, 512, 544, 768, 1000, 1024}) {
      for (int registers :
           {0, 8, 16, 24, 32, 33, 40, 48, 56, 64, 65, 72, 80, 96, 128, 168, 200, 255}) {
        for (int shared : {0, 1, 1000, 4096, 12289, 16384, 32768, 49152, 50000, 65536, 98304,
                           101376, 150000, 166912, 232448, 240000}) {
          for (int carveout : {-1, 0, 25, 50, 100}) {
            cudaOccFuncAttributes kernel;
            kernel.maxThreadsPerBlock = 1024;
            kernel.numRegs = registers;
            kernel.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN;
            kernel.maxDynamicSharedSizeBytes = static_cast<std::size_t>(shared);
            kernel.numBlockBarriers = 1;
            cudaOccDeviceState state;
            state.carveoutConfig = carveout;
            cudaOccResult theirs;
            const auto status = cudaOccMaxActiveBlocksPerMultiprocessor(
                &theirs, &device, &kernel, &state, threads, static_cast<std::size_t>(shared));
            ASSERT_EQ(status, CUDA_OCC_SUCCESS) << arch;
            const Occupancy ours = occupancy(sm, {threads, registers, shared, 1, 1, carveout});
            const auto what = std::string(arch) + ", " + std::to_string(threads) + " threads, " +
                              std::to_string(registers) + " registers, " + std::to_string(shared) +
                              " bytes, carve-out " + std::to_string(carveout);
            ASSERT_EQ(ours.blocks, theirs.activeBlocksPerMultiprocessor) << what;
            const auto same = [&](int mine, int their) {
              ASSERT_EQ(mine, std::min(their, Occupancy::kUnlimited)) << what;
            };
            same(ours.by_registers, theirs.blockLimitRegs);
            same(ours.by_shared, theirs.blockLimitSharedMem);
            same(ours.by_warps, theirs.blockLimitWarps);
            same(ours.by_blocks, theirs.blockLimitBlocks);
            same(ours.by_barriers, theirs.blockLimitBarriers);
            ++compared;
          }
        }
      }
    }
  }
  EXPECT_GT(compared, 200'000);
}

#endif

}  // namespace
}  // namespace kernelpro
