// SPDX-License-Identifier: Apache-2.0
#include "machine/driver/cupti.h"

#if KERNELPRO_HAVE_CUPTI

#include <dlfcn.h>

#include <cstdlib>
#include <vector>

#include "base/cuda_toolkit.h"
#include "base/files.h"

namespace kernelpro {

namespace {

#define KP_TEXT2(x) #x
#define KP_TEXT(x) KP_TEXT2(x)
constexpr const char* kSoname = "libcupti.so." KP_TEXT(KERNELPRO_CUPTI_MAJOR);

// The toolkit's folders, then those of PyTorch's packages.
std::vector<std::string> folders() {
  std::vector<std::string> found = cuda_library_folders();
  found.push_back("");  // the loader's search path
  std::vector<std::string> roots;
  if (const char* venv = std::getenv("VIRTUAL_ENV")) roots.push_back(venv);
  if (const std::string python = find_program("python3"); !python.empty()) {
    roots.push_back(dirname(dirname(python)));
  }
  for (const std::string& root : roots) {
    for (const char* lib : {"lib", "local/lib"}) {
      for (const std::string& version : list_dir(join(root, lib))) {
        if (version.rfind("python3", 0) != 0) continue;
        for (const char* packages : {"site-packages", "dist-packages"}) {
          const std::string nvidia = join(join(join(root, lib), version), packages) + "/nvidia";
          for (const std::string& package : list_dir(nvidia)) {
            if (package.rfind("cu", 0) == 0) found.push_back(nvidia + "/" + package + "/lib");
          }
        }
      }
    }
  }
  return found;
}

void* open_library(std::string* path) {
  // Two copies in one process would conflict.
  *path = kSoname;
  if (void* library = ::dlopen(kSoname, RTLD_NOW | RTLD_NOLOAD)) return library;
  for (const char* name : {kSoname, "libcupti.so"}) {
    for (const std::string& folder : folders()) {
      *path = folder.empty() ? std::string(name) : join(folder, name);
      if (!folder.empty() && !exists(*path)) continue;
      // It looks up its sibling library by name only, so load that first.
      if (!folder.empty()) {
        static_cast<void>(::dlopen(join(folder, "libnvperf_host.so").c_str(), RTLD_NOW));
      }
      if (void* library = ::dlopen(path->c_str(), RTLD_NOW | RTLD_LOCAL)) return library;
    }
  }
  return nullptr;
}

Result<CuptiLibrary> load_library() {
  CuptiLibrary library;
  library.handle = open_library(&library.path);
  if (library.handle == nullptr) {
    return fail(ErrorKind::kEnvironment, "CUPTI (" + std::string(kSoname) + ") was not found",
                "install it with the CUDA toolkit, or `pip install nvidia-cuda-cupti`, and put "
                "its lib folder on LD_LIBRARY_PATH");
  }
  return library;
}

Result<Cupti> load_cupti() {
  KP_ASSIGN(const CuptiLibrary* opened, cupti_library());
  void* library = opened->handle;
  Cupti cupti;
  cupti.path = opened->path;
#define KP_CUPTI_LOAD(name)                                                             \
  cupti.name = reinterpret_cast<decltype(cupti.name)>(::dlsym(library, "cupti" #name)); \
  if (cupti.name == nullptr)                                                            \
    return fail(ErrorKind::kEnvironment, cupti.path + " has no cupti" #name,            \
                "install CUPTI of CUDA 13");
  KP_CUPTI_FUNCTIONS(KP_CUPTI_LOAD)
#undef KP_CUPTI_LOAD
  return cupti;
}

Cause cause_of(CUptiResult result) {
  switch (result) {
    case CUPTI_ERROR_INSUFFICIENT_PRIVILEGES:
    case CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES:
      return Cause::kForbidden;
    case CUPTI_ERROR_HARDWARE_BUSY:
      return Cause::kInUse;
    default:
      return Cause::kProfiler;
  }
}

std::string remedy(CUptiResult result) {
  switch (result) {
    case CUPTI_ERROR_INSUFFICIENT_PRIVILEGES:
    case CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES:
      return "let users read counters (ERR_NVGPUCTRPERM): load the nvidia module with "
             "NVreg_RestrictProfilingToAdminUsers=0, or run as root or with CAP_SYS_ADMIN";
    case CUPTI_ERROR_HARDWARE_BUSY:
    case CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED:
      return "another profiler holds the counters: end it (DCGM: `dcgmi profile --pause`)";
    case CUPTI_ERROR_INVALID_CHIP_NAME:
    case CUPTI_ERROR_INVALID_DEVICE:
    case CUPTI_ERROR_NOT_SUPPORTED:
      return "install a CUPTI that knows this GPU (Turing or later)";
    case CUPTI_ERROR_MIG_DEVICE_NOT_SUPPORTED:
      return "use a GPU that is not split by MIG";
    case CUPTI_ERROR_VIRTUALIZED_DEVICE_NOT_SUPPORTED:
    case CUPTI_ERROR_CONFIDENTIAL_COMPUTING_NOT_SUPPORTED:
    case CUPTI_ERROR_WSL_DEVICE_NOT_SUPPORTED:
      return "enable profiling for this virtual or confidential GPU, or use another one";
    case CUPTI_ERROR_INVALID_METRIC_NAME:
      return "install the CUPTI of the CUDA toolkit that this was built with";
    default:
      return "`kernelpro doctor` shows what this GPU and driver allow; another profiler (Nsight, "
             "DCGM) must not be active";
  }
}

}  // namespace

Result<const CuptiLibrary*> cupti_library() {
  static const Result<CuptiLibrary> library = load_library();
  if (!library) return tl::unexpected<Error>(library.error());
  return &*library;
}

Result<const Cupti*> cupti() {
  static const Result<Cupti> library = load_cupti();
  if (!library) return tl::unexpected<Error>(library.error());
  return &*library;
}

Error cupti_error(const char* call, CUptiResult result) {
  const Result<const CuptiLibrary*> library = cupti_library();
  const char* name = nullptr;
  if (library) {
    const auto text_of = reinterpret_cast<decltype(&::cuptiGetResultString)>(
        ::dlsym((*library)->handle, "cuptiGetResultString"));
    if (text_of != nullptr) text_of(result, &name);
  }
  // The function's name: the source text without the table's name and the arguments.
  std::string what(call);
  if (const std::size_t arrow = what.find("->"); arrow != std::string::npos) {
    what = what.substr(arrow + 2);
  } else if (const std::size_t dot = what.find('.'); dot != std::string::npos) {
    what = what.substr(dot + 1);
  }
  what = what.substr(0, what.find('('));
  return {ErrorKind::kEnvironment,
          "cupti" + what + ": " +
              (name != nullptr ? std::string(name) : "error " + std::to_string(result)),
          remedy(result), cause_of(result)};
}

}  // namespace kernelpro

#endif
