// SPDX-License-Identifier: Apache-2.0
// kernelpro-worker ROLE: the child processes of kernelpro. Not meant to be started by hand.
#include <cstdio>
#include <exception>

#include "measure/worker/roles.h"

namespace {

using kernelpro::WorkerRole;

constexpr kernelpro::RoleRow kRoles[] = {
    {WorkerRole::kCpu, kernelpro::cpu_worker},
    {WorkerRole::kCpuCeilings, kernelpro::cpu_ceilings},
#if KERNELPRO_HAVE_CUDA
    {WorkerRole::kCudaCompile, kernelpro::cuda_compile},
    {WorkerRole::kCudaCapture, kernelpro::cuda_capture},
    {WorkerRole::kCudaJudge, kernelpro::cuda_judge},
    {WorkerRole::kCudaWorker, kernelpro::cuda_worker},
    {WorkerRole::kCudaProfiler, kernelpro::cuda_profiler},
    {WorkerRole::kCudaSampler, kernelpro::cuda_sampler},
    {WorkerRole::kCudaReplay, kernelpro::cuda_replay},
    {WorkerRole::kCudaCeilings, kernelpro::cuda_ceilings},
#endif
};

}  // namespace

int main(int argc, char** argv) {
  const auto wanted = kernelpro::worker_role_from_name(argc < 2 ? "" : argv[1]);
  for (const kernelpro::RoleRow& row : kRoles) {
    if (row.role != wanted) continue;
    try {
      return row.run(argc, argv);
    } catch (const std::exception& error) {
      std::fprintf(stderr, "kernelpro-worker %s: %s\n", argv[1], error.what());
      return 70;
    }
  }
  std::fprintf(stderr, "kernelpro-worker is started by kernelpro, as kernelpro-worker ROLE:\n");
  for (const kernelpro::RoleRow& row : kRoles) {
    std::fprintf(stderr, "  %s\n", kernelpro::worker_role_name(row.role).c_str());
  }
  return 2;
}
