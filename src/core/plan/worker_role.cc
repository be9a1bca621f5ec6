// SPDX-License-Identifier: Apache-2.0
#include "core/plan/worker_role.h"

#include <algorithm>
#include <iterator>

#include "base/error.h"

namespace kernelpro {

namespace {

struct Row {
  WorkerRole role;
  std::string_view name;
};

constexpr Row kRows[] = {
    {WorkerRole::kCpu, "cpu"},
    {WorkerRole::kCpuCeilings, "cpu-ceilings"},
    {WorkerRole::kCudaCompile, "cuda-compile"},
    {WorkerRole::kCudaCapture, "cuda-capture"},
    {WorkerRole::kCudaJudge, "cuda-judge"},
    {WorkerRole::kCudaWorker, "cuda-worker"},
    {WorkerRole::kCudaProfiler, "cuda-profiler"},
    {WorkerRole::kCudaSampler, "cuda-sampler"},
    {WorkerRole::kCudaReplay, "cuda-replay"},
    {WorkerRole::kCudaCeilings, "cuda-ceilings"},
};

}  // namespace

std::string worker_role_name(WorkerRole role) {
  const Row* row = std::ranges::find(kRows, role, &Row::role);
  KP_ASSERT(row != std::end(kRows));
  return std::string(row->name);
}

std::optional<WorkerRole> worker_role_from_name(std::string_view name) {
  const Row* row = std::ranges::find(kRows, name, &Row::name);
  return row == std::end(kRows) ? std::nullopt : std::optional(row->role);
}

}  // namespace kernelpro
