// SPDX-License-Identifier: Apache-2.0
#include "profile/trace/trace.h"

#include <algorithm>
#include <cctype>

namespace kernelpro {

namespace {

bool has(std::string_view name, std::string_view part) {
  return name.find(part) != std::string_view::npos;
}

// "_v2", "_v7000", "_ptsz", "_ptds" at the end.
std::size_t suffix_length(std::string_view name) {
  for (const std::string_view suffix : {"_ptsz", "_ptds"}) {
    if (name.ends_with(suffix)) return suffix.size();
  }
  std::size_t digits = 0;
  while (digits < name.size() &&
         std::isdigit(static_cast<unsigned char>(name[name.size() - 1 - digits]))) {
    ++digits;
  }
  const bool version = digits > 0 && name.substr(0, name.size() - digits).ends_with("_v");
  return version ? digits + 2 : 0;
}

template <class Record>
void sort_by_start(std::vector<Record>* records) {
  std::stable_sort(records->begin(), records->end(), [](const Record& a, const Record& b) {
    return a.start != b.start ? a.start < b.start : a.end < b.end;
  });
}

}  // namespace

std::string_view api_base_name(std::string_view name) {
  for (std::size_t length = suffix_length(name); length > 0; length = suffix_length(name)) {
    name.remove_suffix(length);
  }
  return name;
}

ApiClass api_class(std::string_view name) {
  if (has(name, "Launch")) return has(name, "HostFunc") ? ApiClass::kOther : ApiClass::kLaunch;
  if (has(name, "Graph")) return ApiClass::kOther;
  if (has(name, "Synchronize")) return ApiClass::kSync;
  if (has(name, "Memcpy") || has(name, "Memset")) return ApiClass::kCopy;
  if (has(name, "MallocAsync") || has(name, "FreeAsync") || has(name, "AllocAsync") ||
      has(name, "FromPool")) {
    return ApiClass::kPool;
  }
  for (const std::string_view part :
       {"Malloc", "cudaFree", "MemAlloc", "MemFree", "HostAlloc", "HostRegister", "HostUnregister",
        "MemCreate", "MemMap", "MemUnmap", "MemRelease"}) {
    if (has(name, part)) return ApiClass::kAllocate;
  }
  return ApiClass::kOther;
}

void Trace::sort() {
  sort_by_start(&kernels);
  sort_by_start(&copies);
  sort_by_start(&memsets);
  sort_by_start(&calls);
  sort_by_start(&ranges);
  std::stable_sort(memory.begin(), memory.end(),
                   [](const Memory& a, const Memory& b) { return a.time < b.time; });
  std::sort(overheads.begin(), overheads.end());
}

}  // namespace kernelpro
