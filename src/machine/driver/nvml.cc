// SPDX-License-Identifier: Apache-2.0
#include "machine/driver/nvml.h"

#include <dlfcn.h>

namespace kernelpro {

namespace {

Result<Nvml> load_nvml() {
  void* library = ::dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return fail(ErrorKind::kEnvironment, "NVML (libnvidia-ml.so.1) cannot be opened",
                "it comes with NVIDIA's driver; in a container, start it with --gpus all and the "
                "driver capability `utility`");
  }
  Nvml nvml;
  std::string missing;
#define KP_NVML_OPTIONAL(name) \
  nvml.name = reinterpret_cast<decltype(nvml.name)>(::dlsym(library, "nvml" #name))
#define KP_NVML_REQUIRED(name) \
  KP_NVML_OPTIONAL(name);      \
  if (nvml.name == nullptr) missing = "nvml" #name
  KP_NVML_REQUIRED(Init_v2);
  KP_NVML_REQUIRED(ErrorString);
  KP_NVML_REQUIRED(DeviceGetCount_v2);
  KP_NVML_REQUIRED(DeviceGetHandleByIndex_v2);
  KP_NVML_REQUIRED(DeviceGetHandleByUUID);
  KP_NVML_REQUIRED(DeviceGetUUID);
  KP_NVML_REQUIRED(DeviceGetName);
  KP_NVML_REQUIRED(DeviceGetMemoryInfo);
  KP_NVML_REQUIRED(DeviceGetClockInfo);
  KP_NVML_REQUIRED(DeviceGetMaxClockInfo);
  KP_NVML_REQUIRED(DeviceGetTemperature);
  KP_NVML_REQUIRED(SystemGetDriverVersion);
  KP_NVML_OPTIONAL(DeviceGetComputeRunningProcesses_v3);
  KP_NVML_OPTIONAL(DeviceGetComputeRunningProcesses_v2);
  KP_NVML_OPTIONAL(DeviceGetCurrentClocksEventReasons);
  KP_NVML_OPTIONAL(DeviceGetCurrentClocksThrottleReasons);
  KP_NVML_OPTIONAL(DeviceGetDeviceHandleFromMigDeviceHandle);
  KP_NVML_OPTIONAL(DeviceGetMinorNumber);
  KP_NVML_OPTIONAL(DeviceGetEccMode);
  KP_NVML_OPTIONAL(DeviceGetMigMode);
  KP_NVML_OPTIONAL(DeviceGetPersistenceMode);
  KP_NVML_OPTIONAL(DeviceGetTotalEnergyConsumption);
  KP_NVML_OPTIONAL(DeviceGetEnforcedPowerLimit);
#undef KP_NVML_REQUIRED
#undef KP_NVML_OPTIONAL
  if (!missing.empty()) {
    return fail(ErrorKind::kEnvironment, "this NVML has no " + missing, "update NVIDIA's driver");
  }
  const int status = nvml.Init_v2();
  if (status != 0) {
    return fail(ErrorKind::kEnvironment,
                std::string("NVML does not start: ") + nvml.ErrorString(status),
                "check that nvidia-smi works and that the library and the kernel module have the "
                "same version");
  }
  return nvml;
}

}  // namespace

Result<const Nvml*> nvml() {
  static const Result<Nvml> library = load_nvml();
  if (!library) return tl::unexpected<Error>(library.error());
  return &*library;
}

}  // namespace kernelpro
