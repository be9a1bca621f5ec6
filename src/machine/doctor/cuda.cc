// SPDX-License-Identifier: Apache-2.0
#include "machine/doctor/cuda.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>

#include "base/cuda_toolkit.h"
#include "base/files.h"
#include "base/text.h"
#include "machine/gpu_watch.h"

namespace kernelpro {

namespace {

constexpr const char* kCuda = "cuda target";

// The driver API functions used here, unchanged since CUDA 4.
using InitFunction = int (*)(unsigned);
using DriverVersion = int (*)(int*);
using DeviceCount = int (*)(int*);
using DeviceGet = int (*)(int*, int);
using DeviceName = int (*)(char*, int, int);
using DeviceAttribute = int (*)(int*, int, int);
constexpr int kMajor = 75, kMinor = 76, kMultiprocessors = 16;  // CUdevice_attribute

template <class Function>
Function symbol(void* library, const char* name) {
  return reinterpret_cast<Function>(dlsym(library, name));
}

Probe build_probe() {
#if KERNELPRO_HAVE_CUDA
  return {kCuda, "this build", ProbeState::kOk, "has the cuda target", ""};
#else
  return {kCuda, "this build", ProbeState::kMissing,
          "was built without CUDA headers, so it has no cuda target",
          "install the CUDA toolkit 12 or newer (developer.nvidia.com/cuda-downloads, or NVIDIA's "
          "apt packages cuda-nvcc and cuda-nvrtc-dev), set CUDA_HOME, configure and build again"};
#endif
}

std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

std::string describe_device(void* library, int index) {
  const auto get = symbol<DeviceGet>(library, "cuDeviceGet");
  const auto get_name = symbol<DeviceName>(library, "cuDeviceGetName");
  const auto attribute = symbol<DeviceAttribute>(library, "cuDeviceGetAttribute");
  int device = 0, major = 0, minor = 0, units = 0;
  char name[256] = "";
  if (get == nullptr || get_name == nullptr || attribute == nullptr) return "";
  if (get(&device, index) != 0 || get_name(name, sizeof name - 1, device) != 0) return "";
  attribute(&major, kMajor, device);
  attribute(&minor, kMinor, device);
  attribute(&units, kMultiprocessors, device);
  return printable(name) + ", sm_" + std::to_string(major) + std::to_string(minor) + ", " +
         std::to_string(units) + " SMs";
}

Probe no_gpu(const std::string& why) {
  return {kCuda, "GPU", ProbeState::kMissing, why, "run on a machine with an NVIDIA GPU"};
}

// The driver and the first device.
std::vector<Probe> driver_probes() {
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return {{kCuda, "driver", ProbeState::kMissing, "libcuda.so.1 cannot be opened",
             "install NVIDIA's driver; in a container, start it with --gpus all"},
            no_gpu("not visible without a driver")};
  }
  const auto init = symbol<InitFunction>(library, "cuInit");
  const auto get_version = symbol<DriverVersion>(library, "cuDriverGetVersion");
  const auto count_devices = symbol<DeviceCount>(library, "cuDeviceGetCount");
  int version = 0, count = 0;
  if (init == nullptr || get_version == nullptr || count_devices == nullptr) {
    return {{kCuda, "driver", ProbeState::kMissing, "libcuda.so.1 is not NVIDIA's driver",
             "install NVIDIA's driver"}};
  }
  get_version(&version);
  const int started = init(0);
  if (started != 0) {
    return {{kCuda, "driver", ProbeState::kLimited,
             "CUDA " + version_text(version) + ", but cuInit fails with error " +
                 std::to_string(started),
             "check that nvidia-smi works and that this user can open /dev/nvidia*"},
            no_gpu("the driver does not start")};
  }
  const Probe driver = {kCuda, "driver", ProbeState::kOk, "CUDA " + version_text(version), ""};
  if (count_devices(&count) != 0 || count == 0) {
    return {driver, no_gpu("the driver sees no GPU (CUDA_VISIBLE_DEVICES?)")};
  }
  return {driver,
          {kCuda, "GPU", ProbeState::kOk,
           describe_device(library, 0) +
               (count > 1 ? "; " + std::to_string(count - 1) + " more" : std::string()),
           ""}};
}

Probe tool_probe(const std::string& name, ProbeState without, const std::string& why,
                 const std::string& next) {
  const std::string path = find_cuda_tool(name);
  if (!path.empty()) return {kCuda, name, ProbeState::kOk, path, ""};
  return {kCuda, name, without, "not found: " + why, next};
}

Probe nvrtc_probe() {
  for (const std::string& path : cuda_library_paths("nvrtc")) {
    if (dlopen(path.c_str(), RTLD_LAZY | RTLD_LOCAL) != nullptr) {
      return {kCuda, "NVRTC", ProbeState::kOk, path, ""};
    }
  }
  return {kCuda, "NVRTC", ProbeState::kMissing,
          "libnvrtc.so cannot be opened: kernels in plan form cannot be compiled",
          "install cuda-nvrtc (NVIDIA's apt packages) or pip's nvidia-cuda-nvrtc, on "
          "LD_LIBRARY_PATH"};
}

Probe headers_probe() {
  if (const std::string path = find_cuda_headers(); !path.empty()) {
    return {kCuda, "headers", ProbeState::kOk, path, ""};
  }
  return {kCuda, "headers", ProbeState::kMissing,
          "cuda_fp16.h was not found: kernels that use half or bfloat16 do not compile",
          "install the CUDA toolkit (cuda-cudart-dev), or set CUDA_HOME"};
}

// Per GPU, from NVML: settings, and other processes.
std::vector<Probe> nvml_probes() {
  const Result<std::vector<GpuName>> gpus = list_gpus();
  if (!gpus) {
    return {{kCuda, "NVML", ProbeState::kLimited,
             gpus.error().message + ": clocks, throttling and other processes go unnoticed",
             gpus.error().next}};
  }
  std::vector<Probe> probes;
  for (const GpuName& gpu : *gpus) {
    const Result<GpuState> state = gpu_state(gpu.uuid);
    const Result<GpuSettings> settings = gpu_settings(gpu.uuid);
    const std::string name = "GPU " + std::to_string(gpu.index);
    if (!state || !settings) {
      const Error& error = !state ? state.error() : settings.error();
      probes.push_back({kCuda, name, ProbeState::kLimited, error.message, error.next});
      continue;
    }
    Probe probe{kCuda, name, ProbeState::kOk,
                gpu.name + " " + gpu.uuid + ", driver " + settings->driver + ", " +
                    human_bytes(static_cast<double>(settings->free_bytes)) + " of " +
                    human_bytes(static_cast<double>(settings->total_bytes)) + " free, SM clock " +
                    std::to_string(state->sm_mhz) + " of " + std::to_string(state->max_sm_mhz) +
                    " MHz, " + std::to_string(state->temperature_c) + " C, ECC " + settings->ecc +
                    ", MIG " + settings->mig + ", persistence " + settings->persistence,
                ""};
    if (settings->power_limit_w > 0) {
      probe.found += ", power limit " + number(settings->power_limit_w, 4) + " W";
    }
    const std::vector<std::string> notes = watch_notes(*state, *state);
    if (!notes.empty()) {
      probe.state = ProbeState::kLimited;
      probe.found += "; " + join_text(notes, "; ");
      probe.next = "timings are unreliable now: wait, or choose another GPU with --gpu";
    }
    probes.push_back(std::move(probe));
  }
  return probes;
}

// The driver's parameter file shows who may read hardware counters.
Probe counters_probe() {
  const auto parameters = read_file("/proc/driver/nvidia/params");
  if (!parameters) {
    return {kCuda, "hardware counters", ProbeState::kMissing, "no NVIDIA kernel module is loaded",
            "install NVIDIA's driver"};
  }
  if (!contains(*parameters, "RmProfilingAdminOnly: 1") || geteuid() == 0) {
    return {kCuda, "hardware counters", ProbeState::kOk, "this user may read them", ""};
  }
  return {kCuda, "hardware counters", ProbeState::kLimited,
          "only an administrator may read them: evidence is limited to SASS, ptxas and timing",
          "load the driver with NVreg_RestrictProfilingToAdminUsers=0, or run as root"};
}

}  // namespace

std::vector<Probe> probe_cuda() {
  const std::string toolkit = "install the CUDA toolkit, or set CUDA_HOME";
  std::vector<Probe> probes = {build_probe()};
  for (Probe& probe : driver_probes()) probes.push_back(std::move(probe));
  for (Probe& probe : nvml_probes()) probes.push_back(std::move(probe));
  probes.push_back(headers_probe());
  probes.push_back(nvrtc_probe());
  probes.push_back(
      tool_probe("nvcc", ProbeState::kMissing, "kernels in host form cannot be compiled", toolkit));
  probes.push_back(
      tool_probe("ptxas", ProbeState::kMissing, "nvcc does not work without it", toolkit));
  const bool cuobjdump = !find_cuda_tool("cuobjdump").empty();
  probes.push_back(tool_probe("nvdisasm", cuobjdump ? ProbeState::kLimited : ProbeState::kMissing,
                              cuobjdump ? "cuobjdump is used instead" : "no evidence from SASS",
                              toolkit));
  probes.push_back(tool_probe("cuobjdump", ProbeState::kLimited,
                              "only needed where nvdisasm is missing", toolkit));
  probes.push_back(tool_probe("ncu", ProbeState::kLimited, "Nsight Compute reports cannot be read",
                              "install Nsight Compute"));
  probes.push_back(tool_probe("compute-sanitizer", ProbeState::kLimited,
                              "crash reports lack the kernel, thread and line", toolkit));
  probes.push_back(counters_probe());
  return probes;
}

}  // namespace kernelpro
