// SPDX-License-Identifier: Apache-2.0
// NVIDIA's GPU architectures as values: their features and the limits of their multiprocessors. To
// add one, add a row in architecture.cc. Limits as in NVIDIA's cuda_occupancy.h and the CUDA
// programming guide, sm_70 to sm_121; features as in the PTX ISA's target notes. Pure.
#pragma once

#include <compare>
#include <optional>
#include <string>
#include <string_view>

namespace kernelpro {

// A buffer below so many bytes, about half of L2, is still there when the next kernel reads it, ...
inline constexpr double kKeptInL2 = 24e6;
inline constexpr double kL2Speed = 2.5;  // ... at so many times the bandwidth of device memory

enum class GpuFeature : unsigned {
  kTma = 1,    // the bulk tensor copy engine (cp.async.bulk)
  kWgmma = 2,  // warpgroup matrix products
};

// Per multiprocessor; in bytes unless noted.
struct SmLimits {
  int warps = 0;
  int blocks = 0;
  int registers = 65536;
  int shared_bytes = 0;           // for all blocks together, with the largest carve-out
  int shared_block_bytes = 0;     // for one block, opted in
  int shared_reserved_bytes = 0;  // taken by the driver per block
  int shared_granularity = 0;
  int shared_least_bytes = 0;  // in the smallest carve-out
  int barriers = 0;            // named barriers; 0: not a limit (before sm_90)
  int fp32_lanes = 0;          // fused multiply-adds per cycle
};

struct Architecture {
  int major = 0;
  int minor = 0;
  // 'a': code for this architecture only, free to use features that later ones may drop; 'f': for
  // its family; 0: portable.
  char suffix = 0;

  // "sm_90", "sm_90a", "sm_120f"; nullopt: not an NVIDIA architecture ("x86-64", "").
  static std::optional<Architecture> parse(std::string_view name);
  std::string name() const;  // "sm_90a"
  // The name to compile for: with "a" from sm_90 on, where features need it.
  std::string compile_name() const;
  // "-gencode=arch=compute_90a,code=sm_90a". (The shorthand -arch=sm_90a also runs a plain sm_90
  // pass, which rejects wgmma.)
  std::string gencode() const;

  bool has(GpuFeature feature) const;  // false for an architecture without a row
  const SmLimits* limits() const;      // null for an architecture without a row

  // By age; specific code comes after portable code of the same number.
  auto operator<=>(const Architecture&) const = default;
};

}  // namespace kernelpro
