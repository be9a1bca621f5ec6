// SPDX-License-Identifier: Apache-2.0
// NVIDIA's GPU architectures as values: what one can do, and the limits of its multiprocessors.
// Adding one: a row in architecture.cc. Limits as in NVIDIA's cuda_occupancy.h and the CUDA
// programming guide, sm_70 to sm_121; features as in the PTX ISA's target notes. Pure.
#pragma once

#include <compare>
#include <optional>
#include <string>
#include <string_view>

namespace kernelpro {

enum class GpuFeature : unsigned {
  kAsyncCopy = 1,  // cp.async from global to shared memory
  kTma = 2,        // the bulk tensor copy engine (cp.async.bulk)
  kClusters = 4,   // thread block clusters with distributed shared memory
  kWgmma = 8,      // warpgroup matrix products
  kTcgen05 = 16,   // fifth-generation tensor cores with tensor memory
};

// Of one multiprocessor; bytes where not said otherwise.
struct SmLimits {
  int warps = 0;
  int blocks = 0;
  int registers = 65536;
  int shared_bytes = 0;           // for blocks, the largest carve-out
  int shared_block_bytes = 0;     // for one block, opted in
  int shared_reserved_bytes = 0;  // taken by the driver for each block
  int shared_granularity = 0;
  int shared_least_bytes = 0;  // of the smallest carve-out
  int barriers = 0;            // named barriers; 0: they do not limit (before sm_90)
  int fp32_lanes = 0;          // fused multiply-adds per cycle
};

struct Architecture {
  int major = 0;
  int minor = 0;
  // 'a': code for this architecture alone, which may use features that have no successor; 'f': for
  // its family; 0: portable.
  char suffix = 0;

  // "sm_90", "sm_90a", "sm_120f"; nullopt: no architecture of NVIDIA's ("x86-64", "").
  static std::optional<Architecture> parse(std::string_view name);
  std::string name() const;  // "sm_90a"
  // The name to compile for: with the "a" where features need it, from sm_90 on.
  std::string compile_name() const;
  // "-gencode=arch=compute_90a,code=sm_90a". (The shorthand -arch=sm_90a also makes a plain sm_90
  // pass, which rejects wgmma.)
  std::string gencode() const;

  bool has(GpuFeature feature) const;  // false for an architecture without a row
  const SmLimits* limits() const;      // null for an architecture without a row

  // By age; specific code comes after portable code of the same number.
  auto operator<=>(const Architecture&) const = default;
};

}  // namespace kernelpro
