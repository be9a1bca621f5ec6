// SPDX-License-Identifier: Apache-2.0
#include "measure/worker/cuda/nvrtc.h"

#if KERNELPRO_HAVE_CUDA

#include <dlfcn.h>
#include <nvrtc.h>

#include <cstdlib>

#include "base/cuda_toolkit.h"
#include "base/files.h"
#include "base/hash.h"
#include "embedded/draw_source.h"
#include "embedded/shapes_source.h"

namespace kernelpro {

namespace {

// clang-format off
#define KP_NVRTC_FUNCTIONS(X) \
  X(Version) X(CreateProgram) X(DestroyProgram) X(CompileProgram) X(GetProgramLogSize) \
  X(GetProgramLog) X(GetCUBINSize) X(GetCUBIN) X(GetErrorString)
// clang-format on

struct Nvrtc {
#define KP_NVRTC_MEMBER(name) decltype(&::nvrtc##name) name = nullptr;
  KP_NVRTC_FUNCTIONS(KP_NVRTC_MEMBER)
#undef KP_NVRTC_MEMBER
};

Result<Nvrtc> load_nvrtc() {
  void* library = nullptr;
  for (const std::string& path : cuda_library_paths("nvrtc")) {
    if (library == nullptr) library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  }
  if (library == nullptr) {
    return fail(ErrorKind::kEnvironment, "NVRTC (libnvrtc.so) was not found",
                "install the CUDA toolkit, or `pip install nvidia-cuda-nvrtc` and put its lib "
                "folder on LD_LIBRARY_PATH");
  }
  // CuTe's headers need 280 MB; pages are used only when touched. From CUDA 12.8 on.
  constexpr std::size_t kPrecompiledBytes = 1u << 30;
  using SetHeap = int (*)(std::size_t);
  if (const auto set = reinterpret_cast<SetHeap>(::dlsym(library, "nvrtcSetPCHHeapSize"))) {
    static_cast<void>(set(kPrecompiledBytes));
  }
  Nvrtc nvrtc;
#define KP_NVRTC_LOAD(name)                                                             \
  nvrtc.name = reinterpret_cast<decltype(nvrtc.name)>(::dlsym(library, "nvrtc" #name)); \
  if (nvrtc.name == nullptr)                                                            \
    return fail(ErrorKind::kEnvironment, "this NVRTC has no nvrtc" #name,               \
                "install CUDA 12 or later");
  KP_NVRTC_FUNCTIONS(KP_NVRTC_LOAD)
#undef KP_NVRTC_LOAD
  return nvrtc;
}

Result<const Nvrtc*> nvrtc() {
  static const Result<Nvrtc> library = load_nvrtc();
  if (!library) return tl::unexpected<Error>(library.error());
  return &*library;
}

}  // namespace

Result<std::string> nvrtc_version() {
  KP_ASSIGN(const Nvrtc* library, nvrtc());
  int major = 0, minor = 0;
  library->Version(&major, &minor);
  return std::to_string(major) + "." + std::to_string(minor);
}

Result<NvrtcOutput> nvrtc_compile(const std::string& source, const std::string& file_name,
                                  const std::vector<NvrtcHeader>& headers,
                                  const std::vector<std::string>& options) {
  KP_ASSIGN(const Nvrtc* library, nvrtc());
  const Nvrtc& rtc = *library;
  std::vector<const char*> texts, names, flags;
  for (const NvrtcHeader& h : headers) {
    texts.push_back(h.text.c_str());
    names.push_back(h.name.c_str());
  }
  for (const std::string& option : options) flags.push_back(option.c_str());
  nvrtcProgram program = nullptr;
  nvrtcResult result =
      rtc.CreateProgram(&program, source.c_str(), file_name.c_str(),
                        static_cast<int>(headers.size()), texts.data(), names.data());
  if (result != NVRTC_SUCCESS) {
    return fail(ErrorKind::kEnvironment, std::string("NVRTC: ") + rtc.GetErrorString(result),
                "check the CUDA installation with `kernelpro doctor`");
  }
  NvrtcOutput output;
  result = rtc.CompileProgram(program, static_cast<int>(flags.size()), flags.data());
  std::size_t bytes = 0;
  if (rtc.GetProgramLogSize(program, &bytes) == NVRTC_SUCCESS && bytes > 1) {
    output.log.resize(bytes);
    rtc.GetProgramLog(program, output.log.data());
    output.log.resize(bytes - 1);
  }
  output.ok = result == NVRTC_SUCCESS;
  if (output.ok && rtc.GetCUBINSize(program, &bytes) == NVRTC_SUCCESS && bytes > 0) {
    output.cubin.resize(bytes);
    rtc.GetCUBIN(program, output.cubin.data());
  } else if (output.log.empty()) {
    output.ok = false;
    output.log = std::string("NVRTC: ") + rtc.GetErrorString(result);
  }
  rtc.DestroyProgram(&program);
  return output;
}

Result<std::string> trusted_cubin_path(std::string_view source, const std::string& arch) {
  KP_ASSIGN(const std::string version, nvrtc_version());
  return join(
      join(cache_dir(), "trusted"),
      hash_hex({source, embedded::draw_source, embedded::shapes_source, arch, version}) + ".cubin");
}

Result<std::string> trusted_cubin(std::string_view source, const std::string& arch) {
  KP_ASSIGN(const std::string path, trusted_cubin_path(source, arch));
  if (exists(path)) return read_file(path);
  KP_ASSIGN(NvrtcOutput output, nvrtc_compile(std::string(source), "judge.cu",
                                              {{"draw.h", std::string(embedded::draw_source)},
                                               {"shapes.h", std::string(embedded::shapes_source)}},
                                              {"-arch=" + arch, "-std=c++17", "-default-device"}));
  if (!output.ok) {
    return fail(ErrorKind::kInternal, "our own kernels do not compile: " + output.log,
                "report this with your CUDA version");
  }
  // A cache: failing to write is fine.
  if (make_dirs(dirname(path))) (void)write_file(path, output.cubin);
  return output.cubin;
}

}  // namespace kernelpro

#endif
