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
};

CpuInfo read_cpu_info();

}  // namespace kernelpro
