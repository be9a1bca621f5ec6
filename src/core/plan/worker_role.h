// SPDX-License-Identifier: Apache-2.0
// What a process of kernelpro-worker is for. To add a role: a value, a row in worker_role.cc, and
// the row in measure/worker/main.cc that runs it. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace kernelpro {

enum class WorkerRole {
  kCpu,           // loads a cpu candidate, checks and times calls
  kCpuCeilings,   // measures copy bandwidth and FMA rate
  kCudaCompile,   // NVRTC: plan form -> cubin
  kCudaCapture,   // host form -> LaunchPlan, with no real data mapped
  kCudaJudge,     // owns buffers, draws inputs, reference, compares
  kCudaWorker,    // rebuilds graphs from plans, runs and times them
  kCudaProfiler,  // hardware counters of a plan's kernels
  kCudaSampler,   // program-counter samples of a plan's kernels
  kCudaReplay,    // runs one plan once, for compute-sanitizer
  kCudaCeilings,  // describes the GPU and measures its ceilings
};

// As in `kernelpro-worker ROLE`.
std::string worker_role_name(WorkerRole role);
std::optional<WorkerRole> worker_role_from_name(std::string_view name);

}  // namespace kernelpro
