// SPDX-License-Identifier: Apache-2.0
#include "machine/cpu.h"

#include <sched.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <thread>
#include <vector>

#include "base/files.h"
#include "base/text.h"

namespace kernelpro {

namespace {

// First line of a small file of /sys or /proc, or "".
std::string first_line_of(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return std::string(trim(line));
}

// Value of "key : value" in a file, or "".
std::string field_of(const std::string& path, const std::string& key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(':');
    if (colon != std::string::npos && trim(std::string_view(line).substr(0, colon)) == key) {
      return std::string(trim(std::string_view(line).substr(colon + 1)));
    }
  }
  return "";
}

std::int64_t with_unit(const std::string& text) {  // "32768K"
  char* end = nullptr;
  const std::int64_t value = std::strtoll(text.c_str(), &end, 10);
  if (end != nullptr && *end == 'K') return value << 10;
  if (end != nullptr && *end == 'M') return value << 20;
  return value;
}

std::int64_t last_level_cache() {
  const std::string root = "/sys/devices/system/cpu/cpu0/cache";
  std::int64_t bytes = 0, best_level = 0;
  for (const std::string& name : list_dir(root)) {
    const std::string folder = join(root, name);
    const std::string type = first_line_of(join(folder, "type"));
    const std::int64_t level = with_unit(first_line_of(join(folder, "level")));
    if (type != "Instruction" && level > best_level) {
      best_level = level;
      bytes = with_unit(first_line_of(join(folder, "size")));
    }
  }
  if (bytes == 0) bytes = std::max(0L, ::sysconf(_SC_LEVEL3_CACHE_SIZE));
  return bytes;
}

int usable_threads() {
  std::vector<unsigned long> mask(1024 / sizeof(unsigned long));  // 8192 processors
  const std::size_t size = mask.size() * sizeof(unsigned long);
  if (::sched_getaffinity(0, size, reinterpret_cast<cpu_set_t*>(mask.data())) != 0) {
    return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  }
  return std::max(1, CPU_COUNT_S(size, reinterpret_cast<cpu_set_t*>(mask.data())));
}

}  // namespace

CpuInfo read_cpu_info() {
  CpuInfo info;
  info.name = field_of("/proc/cpuinfo", "model name");
  utsname machine{};
  ::uname(&machine);
  info.arch = std::string(machine.machine) == "x86_64" ? "x86-64" : machine.machine;
  if (info.name.empty()) info.name = info.arch + " processor";
  info.threads = usable_threads();
  info.cache_bytes = last_level_cache();
  return info;
}

}  // namespace kernelpro
