// SPDX-License-Identifier: Apache-2.0
// kernelpro-worker is one program with several roles, named by argv[1]. A role talks to its
// supervisor over the channel at descriptor 3 and ends when the supervisor closes it. To add one:
// its file and one row in main.cc.
#pragma once

namespace kernelpro {

struct WorkerRole {
  const char* name;
  const char* summary;
  int (*run)(int argc, char** argv);  // exit status
};

int cpu_worker(int argc, char** argv);     // loads a cpu candidate, checks and times calls
int cpu_ceilings(int argc, char** argv);   // measures copy bandwidth and FMA rate
int cuda_compile(int argc, char** argv);   // NVRTC: plan form -> cubin
int cuda_capture(int argc, char** argv);   // host form -> LaunchPlan, with no real data mapped
int cuda_judge(int argc, char** argv);     // owns buffers, draws inputs, reference, compares
int cuda_worker(int argc, char** argv);    // rebuilds graphs from plans, runs and times them
int cuda_profiler(int argc, char** argv);  // hardware counters of a plan's kernels
int cuda_sampler(int argc, char** argv);   // program-counter samples of a plan's kernels
int cuda_replay(int argc, char** argv);    // runs one plan once, for compute-sanitizer
int cuda_ceilings(int argc, char** argv);  // describes the GPU and measures its ceilings

}  // namespace kernelpro
