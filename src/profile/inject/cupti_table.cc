// SPDX-License-Identifier: Apache-2.0
#include "profile/inject/cupti_table.h"

#include <dlfcn.h>

#include <cstdlib>
#include <vector>

#include "profile/inject/trace_format.h"

namespace kernelpro::tracer {

namespace {

// The first version whose activity records begin like those in our headers.
constexpr std::uint32_t kOldestVersion = 18;  // CUDA 12.0

constexpr const char* kSonames[] = {"libcupti.so.13", "libcupti.so.12", "libcupti.so"};

void* open_library() {
  if (const char* path = std::getenv(trace_format::kCuptiVariable); path && *path) {
    return ::dlopen(path, RTLD_NOW | RTLD_LOCAL);
  }
  for (const char* name : kSonames) {
    if (void* library = ::dlopen(name, RTLD_NOW | RTLD_NOLOAD)) return library;
  }
  std::vector<std::string> folders = {""};
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"}) {
    if (const char* root = std::getenv(variable); root && *root) folders.push_back(root);
  }
  folders.push_back("/usr/local/cuda");
  for (const std::string& folder : folders) {
    for (const char* lib : {"/extras/CUPTI/lib64/", "/lib64/", "/lib/"}) {
      for (const char* name : kSonames) {
        const std::string path = folder.empty() ? name : folder + lib + name;
        if (void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) return library;
      }
      if (folder.empty()) break;
    }
  }
  return nullptr;
}

std::string load(CuptiTable* table) {
  table->library = open_library();
  if (table->library == nullptr) {
    return std::string(
               "CUPTI (libcupti.so.13) could not be loaded into the program; install it "
               "with the CUDA toolkit or set ") +
           trace_format::kCuptiVariable + " to its path";
  }
#define KP_LOAD(name) \
  table->name = reinterpret_cast<decltype(table->name)>(::dlsym(table->library, "cupti" #name));
  KP_ACTIVITY_FUNCTIONS(KP_LOAD)
  KP_ACTIVITY_OPTIONAL(KP_LOAD)
#undef KP_LOAD
#define KP_CHECK(name) \
  if (table->name == nullptr) return "this CUPTI has no cupti" #name "; install that of CUDA 13";
  KP_ACTIVITY_FUNCTIONS(KP_CHECK)
#undef KP_CHECK
  std::uint32_t version = 0;
  if (table->GetVersion(&version) != CUPTI_SUCCESS || version < kOldestVersion) {
    return "the program's CUPTI is of version " + std::to_string(version) +
           ", which is too old; use one of CUDA 12 or later";
  }
  return "";
}

}  // namespace

const CuptiTable* cupti_table(std::string* problem) {
  static CuptiTable table;
  static const std::string* found = new std::string(load(&table));
  if (problem != nullptr) *problem = *found;
  return found->empty() ? &table : nullptr;
}

}  // namespace kernelpro::tracer
