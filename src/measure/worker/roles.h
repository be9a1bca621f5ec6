// SPDX-License-Identifier: Apache-2.0
// kernelpro-worker is one program with several roles, named by argv[1]. A role talks to its
// supervisor over the channel at descriptor 3 and ends when the supervisor closes it. To add one:
// its file and one row in main.cc.
#pragma once

#include "core/plan/worker_role.h"

namespace kernelpro {

// How a role is run (core/plan/worker_role.h says what each is for).
struct RoleRow {
  WorkerRole role;
  int (*run)(int argc, char** argv);  // exit status
};

int cpu_worker(int argc, char** argv);
int cpu_ceilings(int argc, char** argv);
int cuda_compile(int argc, char** argv);
int cuda_capture(int argc, char** argv);
int cuda_judge(int argc, char** argv);
int cuda_worker(int argc, char** argv);
int cuda_profiler(int argc, char** argv);
int cuda_sampler(int argc, char** argv);
int cuda_replay(int argc, char** argv);
int cuda_ceilings(int argc, char** argv);

}  // namespace kernelpro
