// SPDX-License-Identifier: Apache-2.0
// A call of a module, timed from outside (docs/evaluation.md, "Host form"): the judge reveals a
// set's contents to the module's process and gives it a sign; when that answers, it takes the
// outputs away. The clock is this process's and runs from before the first to after the last, so
// that a module computes nothing before it starts and nothing after it stops. One thread, current
// context.
#pragma once

#if KERNELPRO_HAVE_CUDA

#include <cstdint>
#include <map>

#include "base/process/gate.h"
#include "measure/worker/cuda/handles.h"
#include "measure/worker/cuda/judge_case.h"

namespace kernelpro {

class JudgeTurns {
 public:
  JudgeTurns(const CudaDriver& cu, const CudaContext& context, TrustedKernels* kernels)
      : cu_(cu), context_(context), kernels_(kernels) {}

  // The gate of the process that has this stage from now on.
  Result<void> open_gate(int stage, int fd);

  struct Turn {
    bool answered = false;    // false: nothing else holds
    double us = 0;            // all of it ...
    double revealing_us = 0;  // ... of which the module's process could do nothing
    std::vector<Intrusion> intrusions;
  };
  // `timed`: with L2 cold. The process is told to begin even if this fails.
  Result<Turn> take(JudgeCase* judged, int stage, int set, std::uint64_t number, bool timed,
                    double timeout_s);

  // The least time of a small kernel, from its launch to the end of waiting for it, in
  // microseconds. Much longer than usual while another process's work is on the GPU.
  Result<double> launch_us();

 private:
  Result<void> make_flush();
  Result<void> flush();

  const CudaDriver& cu_;
  const CudaContext& context_;
  TrustedKernels* kernels_;
  std::map<int, Gate> gates_;  // by stage
  DeviceMemory flush_;
  std::uint64_t flush_bytes_ = 0;
};

}  // namespace kernelpro

#endif
