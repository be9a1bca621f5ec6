// SPDX-License-Identifier: Apache-2.0
// What a GPU is doing besides our work: clocks, throttling, other processes. Read through NVML,
// opened at run time; reads only, changes nothing. Thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"

namespace kernelpro {

struct GpuState {
  unsigned sm_mhz = 0;
  unsigned memory_mhz = 0;
  unsigned max_sm_mhz = 0;
  unsigned temperature_c = 0;
  double power_w = 0;
  std::uint64_t throttle_reasons = 0;  // NVML's bits (nvmlClocksEventReasons)
  std::vector<int> foreign_pids;       // compute processes that are not in our process tree
  std::uint64_t used_bytes = 0;        // memory in use on the GPU
  std::uint64_t total_bytes = 0;       // memory that it has
};

struct GpuName {
  int index = 0;     // NVML's
  std::string uuid;  // "GPU-..."; what CUDA_VISIBLE_DEVICES takes
  std::string name;  // "NVIDIA H200"
};

// kEnvironment when NVML is not there; the message says how to get it.
Result<std::vector<GpuName>> list_gpus();
// UUID of a GPU given by UUID (also of a MIG slice, or the start of one) or index; "": the first
// that CUDA_VISIBLE_DEVICES shows. kBadInput when there is no such GPU.
Result<std::string> gpu_uuid(const std::string& gpu);
// The GPUs that a user named, for work on several at once: by index or UUID, separated by commas or
// one each; "all": every one that CUDA_VISIBLE_DEVICES shows. One name is taken as it is. kBadInput
// when there is no such GPU, when one is named twice, or when they are of different models.
Result<std::vector<std::string>> choose_gpus(const std::vector<std::string>& named);
// Device files (/dev/nvidia0, ...) of all GPUs but this one, a UUID; none where its own is not
// known.
std::vector<std::string> device_files_of_others(const std::string& uuid);
// `gpu`: as above.
Result<GpuState> gpu_state(const std::string& gpu);

// What must be said about a measurement taken between two states, as sentences; empty when nothing:
// "the GPU was throttled (power cap)", "1 other process used the GPU", "the clock fell from ...".
std::vector<std::string> watch_notes(const GpuState& before, const GpuState& after);

// Other processes that had work on the GPU in either state.
int foreign_processes(const GpuState& before, const GpuState& after);

// Settings that do not change from second to second, for people.
struct GpuSettings {
  std::string driver;  // "580.159.04"
  std::string ecc;     // "on", "off", "none"
  std::string mig;
  std::string persistence;
  double power_limit_w = 0;  // 0: unknown
  std::uint64_t total_bytes = 0;
  std::uint64_t free_bytes = 0;
};
Result<GpuSettings> gpu_settings(const std::string& gpu);

}  // namespace kernelpro
