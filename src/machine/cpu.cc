// SPDX-License-Identifier: Apache-2.0
#include "machine/cpu.h"

#include <sched.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <string_view>
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

// "L1d 32 KiB, L2 1 MiB, L3 32 MiB", without caches for instructions.
std::string data_caches() {
  const std::string root = "/sys/devices/system/cpu/cpu0/cache";
  std::map<std::int64_t, std::string> levels;
  for (const std::string& name : list_dir(root)) {
    const std::string folder = join(root, name);
    const std::string type = first_line_of(join(folder, "type"));
    const std::int64_t level = with_unit(first_line_of(join(folder, "level")));
    const std::int64_t bytes = with_unit(first_line_of(join(folder, "size")));
    if (type == "Instruction" || level < 1 || bytes <= 0) continue;
    levels[level] = "L" + std::to_string(level) + (type == "Data" ? "d " : " ") +
                    (bytes >= 1 << 20 ? number(static_cast<double>(bytes) / (1 << 20), 3) + " MiB"
                                      : std::to_string(bytes >> 10) + " KiB");
  }
  std::vector<std::string> all;
  for (const auto& [level, text] : levels) all.push_back(text);
  return join_text(all, ", ");
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

std::string instruction_sets_of(const std::string& flags) {
  struct Set {
    std::string_view flag, name;
  };
  static constexpr Set kSets[] = {{"sse4_2", "SSE4.2"},
                                  {"avx", "AVX"},
                                  {"f16c", "F16C"},
                                  {"fma", "FMA"},
                                  {"avx2", "AVX2"},
                                  {"avx_vnni", "AVX-VNNI"},
                                  {"avx512f", "AVX-512 F"},
                                  {"avx512bw", "AVX-512 BW"},
                                  {"avx512vl", "AVX-512 VL"},
                                  {"avx512_vnni", "AVX-512 VNNI"},
                                  {"avx512_bf16", "AVX-512 BF16"},
                                  {"avx512_fp16", "AVX-512 FP16"},
                                  {"amx_int8", "AMX INT8"},
                                  {"amx_bf16", "AMX BF16"},
                                  {"asimd", "NEON"},
                                  {"asimdhp", "NEON FP16"},
                                  {"sve", "SVE"},
                                  {"sve2", "SVE2"},
                                  {"i8mm", "I8MM"},
                                  {"bf16", "BF16"},
                                  {"sme", "SME"}};
  const std::vector<std::string> all = words(flags);
  std::vector<std::string> names;
  for (const Set& set : kSets) {
    if (std::find(all.begin(), all.end(), set.flag) != all.end()) names.emplace_back(set.name);
  }
  return join_text(names, ", ");
}

CpuInfo read_cpu_info() {
  CpuInfo info;
  info.name = field_of("/proc/cpuinfo", "model name");
  utsname machine{};
  ::uname(&machine);
  info.arch = std::string(machine.machine) == "x86_64" ? "x86-64" : machine.machine;
  if (info.name.empty()) info.name = info.arch + " processor";
  info.threads = usable_threads();
  info.cache_bytes = last_level_cache();
  std::string flags = field_of("/proc/cpuinfo", "flags");
  if (flags.empty()) flags = field_of("/proc/cpuinfo", "Features");
  info.instruction_sets = instruction_sets_of(flags);
  info.caches = data_caches();
  return info;
}

}  // namespace kernelpro
