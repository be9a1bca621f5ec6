// SPDX-License-Identifier: Apache-2.0
// Exports a captured CUDA graph as a launch plan.
#pragma once

#if KERNELPRO_HAVE_CUDA

#include <string>
#include <tl/expected.hpp>

#include "core/plan/launch_plan.h"
#include "machine/driver/cuda_driver.h"

namespace kernelpro {

// Why a captured graph cannot become a plan: the name of the rule, and a sentence.
struct CaptureFault {
  std::string rule;
  std::string reason;
};

// What a captured program brings along besides the one cubin and the case's buffers.
class CaptureSurroundings {
 public:
  virtual ~CaptureSurroundings() = default;
  // Whether the memory at this address goes with the plan.
  virtual bool holds(std::uint64_t address) = 0;
  // The image that has this kernel (PlanNode::image).
  virtual tl::expected<int, CaptureFault> image_of(const CUDA_KERNEL_NODE_PARAMS& launch,
                                                   const std::string& name) = 0;
};

// Every address in the plan must lie in `layout`. An address of other memory (cudaMalloc, a
// __device__ variable's symbol address) is a fault, unless `surroundings` (may be null) hold it.
// With surroundings, one of host memory is no fault: libraries pass some that their kernels do not
// read. One that does faults where the plan runs, since nothing is there.
tl::expected<LaunchPlan, CaptureFault> export_graph(const CudaDriver& cu, CUgraph graph,
                                                    const AddressLayout& layout,
                                                    CaptureSurroundings* surroundings = nullptr);

}  // namespace kernelpro

#endif
