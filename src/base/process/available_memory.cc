// SPDX-License-Identifier: Apache-2.0
#include "base/process/available_memory.h"

#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

#include "base/text.h"

namespace kernelpro {

namespace {

constexpr std::int64_t kTorchAlone = 1LL << 30;
constexpr std::int64_t kUsualModule = 4LL << 30;

// -1: no such file, or not a number ("max").
std::int64_t number_in(const std::string& path) {
  std::ifstream file(path);
  std::int64_t value = -1;
  return file >> value ? value : -1;
}

// Available kilobytes from /proc/meminfo; 0: not listed.
std::int64_t available_kb() {
  std::ifstream file("/proc/meminfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("MemAvailable:")) return std::strtoll(line.c_str() + 13, nullptr, 10);
  }
  return 0;
}

// File pages of a control group that the kernel can drop at once.
std::int64_t droppable(const std::string& folder, bool unified) {
  const std::string key = unified ? "inactive_file" : "total_inactive_file";
  std::ifstream file(folder + "/memory.stat");
  std::string name;
  for (std::int64_t value = 0; file >> name >> value;) {
    if (name == key) return value;
  }
  return 0;
}

// Bytes that the cgroup (version 2, or 1) leaves us; a very large number without a limit.
std::int64_t control_group_leaves() {
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  std::ifstream file("/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const std::vector<std::string> parts = split(line, ':');
    if (parts.size() < 3) continue;
    const bool unified = parts[0] == "0" && parts[1].empty();
    if (!unified && parts[1] != "memory") continue;
    const std::string mount = unified ? "/sys/fs/cgroup" : "/sys/fs/cgroup/memory";
    for (const std::string& folder : {mount + parts[2], mount}) {
      const std::int64_t limit =
          number_in(folder + (unified ? "/memory.max" : "/memory.limit_in_bytes"));
      const std::int64_t used =
          number_in(folder + (unified ? "/memory.current" : "/memory.usage_in_bytes"));
      if (limit < 0 || used < 0) continue;
      least = std::min(least, std::max<std::int64_t>(0, limit - used + droppable(folder, unified)));
    }
  }
  return least;
}

}  // namespace

std::int64_t available_memory_bytes() {
  std::int64_t bytes = available_kb() << 10;
  if (bytes <= 0)
    bytes = static_cast<std::int64_t>(::sysconf(_SC_AVPHYS_PAGES)) * ::sysconf(_SC_PAGESIZE);
  return std::min(bytes, control_group_leaves());
}

std::int64_t module_memory_limit(std::int64_t available_bytes) {
  return std::max(
      {kTorchAlone, available_bytes / 2, std::min(kUsualModule, available_bytes / 5 * 4)});
}

#ifdef __GLIBC__
void keep_freed_memory_small() {
  constexpr int kMapped = 1 << 20;
  constexpr int kHeaps = 4;
  ::mallopt(M_MMAP_THRESHOLD, kMapped);
  ::mallopt(M_TRIM_THRESHOLD, kMapped);
  ::mallopt(M_ARENA_MAX, kHeaps);
}

void return_freed_memory() { ::malloc_trim(0); }
#else
void keep_freed_memory_small() {}
void return_freed_memory() {}
#endif

}  // namespace kernelpro
