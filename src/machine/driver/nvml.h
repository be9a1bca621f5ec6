// SPDX-License-Identifier: Apache-2.0
// The subset of NVML (NVIDIA's management library) used here, opened at run time and declared here,
// so that neither its header nor the library need be installed. Calls return 0 for success.
// Thread-safe, as NVML is. Reads only.
#pragma once

#include <string>

#include "base/error.h"

namespace kernelpro {

using NvmlDevice = void*;

struct NvmlMemory {
  unsigned long long total, free, used;
};
// As of nvmlDeviceGetComputeRunningProcesses_v2 and _v3.
struct NvmlProcess {
  unsigned pid;
  unsigned long long used_bytes;
  unsigned gpu_instance, compute_instance;
};

struct Nvml {
  // Required.
  int (*Init_v2)() = nullptr;
  const char* (*ErrorString)(int) = nullptr;
  int (*DeviceGetCount_v2)(unsigned*) = nullptr;
  int (*DeviceGetHandleByIndex_v2)(unsigned, NvmlDevice*) = nullptr;
  int (*DeviceGetHandleByUUID)(const char*, NvmlDevice*) = nullptr;
  int (*DeviceGetUUID)(NvmlDevice, char*, unsigned) = nullptr;
  int (*DeviceGetName)(NvmlDevice, char*, unsigned) = nullptr;
  int (*DeviceGetMemoryInfo)(NvmlDevice, NvmlMemory*) = nullptr;
  int (*DeviceGetClockInfo)(NvmlDevice, int type, unsigned*) = nullptr;
  int (*DeviceGetMaxClockInfo)(NvmlDevice, int type, unsigned*) = nullptr;
  int (*DeviceGetTemperature)(NvmlDevice, int sensor, unsigned*) = nullptr;
  int (*SystemGetDriverVersion)(char*, unsigned) = nullptr;
  // Null in drivers that lack them.
  int (*DeviceGetComputeRunningProcesses_v3)(NvmlDevice, unsigned*, NvmlProcess*) = nullptr;
  int (*DeviceGetComputeRunningProcesses_v2)(NvmlDevice, unsigned*, NvmlProcess*) = nullptr;
  int (*DeviceGetCurrentClocksEventReasons)(NvmlDevice, unsigned long long*) = nullptr;
  int (*DeviceGetCurrentClocksThrottleReasons)(NvmlDevice, unsigned long long*) = nullptr;
  int (*DeviceGetDeviceHandleFromMigDeviceHandle)(NvmlDevice, NvmlDevice*) = nullptr;
  int (*DeviceGetMinorNumber)(NvmlDevice, unsigned*) = nullptr;
  int (*DeviceGetEccMode)(NvmlDevice, int* current, int* pending) = nullptr;
  int (*DeviceGetMigMode)(NvmlDevice, unsigned* current, unsigned* pending) = nullptr;
  int (*DeviceGetPersistenceMode)(NvmlDevice, int*) = nullptr;
  int (*DeviceGetTotalEnergyConsumption)(NvmlDevice, unsigned long long* millijoules) = nullptr;
  int (*DeviceGetEnforcedPowerLimit)(NvmlDevice, unsigned* milliwatts) = nullptr;
};

// NVML's clock types.
inline constexpr int kNvmlSmClock = 1, kNvmlMemoryClock = 2;

// Opens libnvidia-ml.so.1 and initializes it, once. kEnvironment if it is missing.
Result<const Nvml*> nvml();

}  // namespace kernelpro
