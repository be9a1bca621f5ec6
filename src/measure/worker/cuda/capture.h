// SPDX-License-Identifier: Apache-2.0
// Exports a captured CUDA graph as a launch plan.
#pragma once

#if KERNELPRO_HAVE_CUDA

#include <string>
#include <tl/expected.hpp>

#include "core/launch_plan.h"
#include "machine/driver/cuda_driver.h"

namespace kernelpro {

// Why a captured graph cannot become a plan: the name of the rule, and a sentence.
struct CaptureFault {
  std::string rule;
  std::string reason;
};

// Every address in the plan must lie in `layout`. An address of other memory (cudaMalloc, a
// __device__ variable's symbol address) is a fault.
tl::expected<LaunchPlan, CaptureFault> export_graph(const CudaDriver& cu, CUgraph graph,
                                                    const AddressLayout& layout);

}  // namespace kernelpro

#endif
