// SPDX-License-Identifier: Apache-2.0
// Back-to-back calls, long enough for the board's energy counter to measure them.
#pragma once

#if KERNELPRO_HAVE_CUDA

#include <vector>

#include "machine/driver/cuda_driver.h"
#include "machine/energy_counter.h"
#include "measure/worker/cuda/graph.h"

namespace kernelpro {

struct Burned {
  double us_per_call = 0;
  double watts = 0;     // of the whole board, idle power included
  double window_s = 0;  // from tick to tick
  std::uint64_t calls = 0;
};

// Launches `graphs` in turn without a pause: `preheat_s` unmeasured, then from one tick of the
// counter to the first one at least `window_s` later. The stream must be idle, and is idle again
// afterwards. One thread, current context. REQUIRES: graphs is not empty.
Result<Burned> burn(const CudaDriver& cu, CUstream stream,
                    const std::vector<const ReplayGraph*>& graphs, const EnergyCounter& counter,
                    double preheat_s, double window_s);

}  // namespace kernelpro

#endif
