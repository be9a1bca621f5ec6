// SPDX-License-Identifier: Apache-2.0
// How many blocks of a kernel a multiprocessor holds at once, which resource limits them, and what
// would let in one more. Limits as in NVIDIA's cuda_occupancy.h and the CUDA programming guide,
// sm_70 to sm_121. Pure.
#pragma once

#include <optional>
#include <string_view>

namespace kernelpro {

// Of one multiprocessor.
struct SmLimits {
  int warps = 0;
  int blocks = 0;
  int registers = 65536;
  int shared_bytes = 0;           // for blocks, the largest carve-out
  int shared_block_bytes = 0;     // for one block, opted in
  int shared_reserved_bytes = 0;  // taken by the driver for each block
  int shared_granularity = 0;     // bytes
  int shared_least_bytes = 0;     // of the smallest carve-out
  int barriers = 0;               // named barriers; 0: they do not limit (before sm_90)
};
// "sm_90", "sm_90a"; nullopt: an unknown architecture.
std::optional<SmLimits> sm_limits(std::string_view arch);

struct BlockNeeds {
  int threads = 0;
  int registers = 0;         // per thread
  int shared_bytes = 0;      // static and dynamic, per block
  int barriers = 1;          // named barriers that the kernel uses
  int cluster = 1;           // blocks in a cluster
  int shared_carveout = -1;  // percent that the kernel prefers; -1 the driver's choice
};

enum class OccupancyLimiter { kRegisters, kSharedMemory, kWarps, kBlocks, kBarriers };
std::string_view limiter_name(OccupancyLimiter limiter);  // "registers", "shared memory" ...

struct Occupancy {
  int blocks = 0;  // resident on a multiprocessor; 0: the kernel cannot be launched
  int warps = 0;
  double fraction = 0;  // warps over those that a multiprocessor can hold
  OccupancyLimiter limiter = OccupancyLimiter::kWarps;
  // Blocks that each resource alone allows; kUnlimited where the kernel uses none of it.
  static constexpr int kUnlimited = 1 << 20;
  int by_registers = kUnlimited;
  int by_shared = kUnlimited;
  int by_warps = 0;
  int by_blocks = 0;
  int by_barriers = kUnlimited;
  // What would let in one more block as far as this resource goes; 0: nothing would.
  int registers_for_more = 0;     // per thread
  int shared_bytes_for_more = 0;  // per block
};
// REQUIRES: needs.threads > 0. Clusters are held to what fits one multiprocessor: how many clusters
// a GPU holds depends on its layout.
Occupancy occupancy(const SmLimits& sm, const BlockNeeds& needs);

}  // namespace kernelpro
