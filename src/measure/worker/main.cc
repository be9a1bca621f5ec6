// SPDX-License-Identifier: Apache-2.0
// kernelpro-worker ROLE: the child processes of kernelpro. Not meant to be started by hand.
#include <cstdio>
#include <cstring>
#include <exception>

#include "measure/worker/roles.h"

namespace {

constexpr kernelpro::WorkerRole kRoles[] = {
    {"cpu", "loads a cpu candidate, checks and times calls", kernelpro::cpu_worker},
    {"cpu-ceilings", "measures copy bandwidth and FMA rate", kernelpro::cpu_ceilings},
#if KERNELPRO_HAVE_CUDA
    {"cuda-compile", "compiles device code with NVRTC", kernelpro::cuda_compile},
    {"cuda-capture", "turns a candidate's host code into a launch plan", kernelpro::cuda_capture},
    {"cuda-judge", "owns buffers, draws inputs, compares outputs", kernelpro::cuda_judge},
    {"cuda-worker", "rebuilds graphs from launch plans and times them", kernelpro::cuda_worker},
    {"cuda-profiler", "collects hardware counters of launch plans", kernelpro::cuda_profiler},
    {"cuda-sampler", "collects program-counter samples of launch plans", kernelpro::cuda_sampler},
    {"cuda-replay", "runs a launch plan once, for compute-sanitizer", kernelpro::cuda_replay},
    {"cuda-ceilings", "describes the GPU and measures its ceilings", kernelpro::cuda_ceilings},
#endif
};

}  // namespace

int main(int argc, char** argv) {
  for (const kernelpro::WorkerRole& role : kRoles) {
    if (argc < 2 || std::strcmp(argv[1], role.name) != 0) continue;
    try {
      return role.run(argc, argv);
    } catch (const std::exception& error) {
      std::fprintf(stderr, "kernelpro-worker %s: %s\n", role.name, error.what());
      return 70;
    }
  }
  std::fprintf(stderr, "kernelpro-worker is started by kernelpro, as kernelpro-worker ROLE:\n");
  for (const kernelpro::WorkerRole& role : kRoles) {
    std::fprintf(stderr, "  %-14s %s\n", role.name, role.summary);
  }
  return 2;
}
