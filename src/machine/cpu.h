// SPDX-License-Identifier: Apache-2.0
// This machine's processor, as the operating system reports it. Safe from any thread.
#pragma once

#include <cstdint>
#include <string>

#include "base/process/available_memory.h"

namespace kernelpro {

struct CpuInfo {
  std::string name;              // "AMD EPYC 9B14"
  std::string arch;              // "x86-64"
  int threads = 1;               // hardware threads that this process may use
  std::int64_t cache_bytes = 0;  // last-level cache visible to one of them; 0 unknown
  // For people; "": unknown. Vector and matrix instructions alone; caches as one thread sees them.
  std::string instruction_sets;  // "AVX2, FMA, AVX-512 F"
  std::string caches;            // "L1d 32 KiB, L2 1 MiB, L3 32 MiB"
};

CpuInfo read_cpu_info();

// Of "flags" (x86) or "Features" (Arm) in /proc/cpuinfo.
std::string instruction_sets_of(const std::string& flags);

}  // namespace kernelpro
