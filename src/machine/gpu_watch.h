// SPDX-License-Identifier: Apache-2.0
// GPU state that can disturb our work: clocks, throttling, other processes. Read through NVML,
// opened at run time; never changes a setting. Thread-safe.
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
  std::uint64_t throttle_reasons = 0;  // NVML's bits (nvmlClocksEventReasons)
  std::vector<int> foreign_pids;       // compute processes that are not in our process tree
  std::uint64_t used_bytes = 0;        // memory in use on the GPU
  std::uint64_t total_bytes = 0;       // the GPU's memory
};

struct GpuName {
  int index = 0;     // NVML's
  std::string uuid;  // "GPU-..."; as CUDA_VISIBLE_DEVICES takes it
  std::string name;  // "NVIDIA H200"
};

// kEnvironment without NVML; the message explains how to get it.
Result<std::vector<GpuName>> list_gpus();
// UUID of a GPU given by index or UUID (a prefix or a MIG slice's UUID works too); "": the first
// GPU in CUDA_VISIBLE_DEVICES. kBadInput if there is no such GPU.
Result<std::string> gpu_uuid(const std::string& gpu);
// Resolves the GPUs that a user named for multi-GPU work: indices or UUIDs, comma-separated or one
// per element; "all": every GPU in CUDA_VISIBLE_DEVICES. A single name is returned unchanged.
// kBadInput if a GPU does not exist, is named twice, or the models differ.
Result<std::vector<std::string>> choose_gpus(const std::vector<std::string>& named);
// Device files (/dev/nvidia0, ...) of all GPUs except the one with `uuid`; empty if that GPU's own
// file is unknown.
std::vector<std::string> device_files_of_others(const std::string& uuid);
// `gpu`: as above.
Result<GpuState> gpu_state(const std::string& gpu);

// Caveats on a measurement taken between two states, as sentences; empty if none: "the GPU was
// throttled (power cap)", "1 other process used the GPU", "the clock fell from ...".
std::vector<std::string> watch_notes(const GpuState& before, const GpuState& after);

// Number of other processes with work on the GPU in either state.
int foreign_processes(const GpuState& before, const GpuState& after);

// Slow-changing settings, for display.
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
