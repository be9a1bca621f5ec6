// SPDX-License-Identifier: Apache-2.0
// The nodes of a launch plan in the driver's form: for a graph (graph.h) or one by one
// (profiler_launches.h). All fail with kBadInput when the node does not fit its code; the message
// gives the mismatch. One thread, current context.
#pragma once

#if KERNELPRO_HAVE_CUDA

#include <string>
#include <vector>

#include "core/plan/launch_plan.h"
#include "machine/driver/cuda_driver.h"

namespace kernelpro {

// A kernel with everything that its launch needs.
struct KernelNode {
  CUfunction function = nullptr;  // with the attributes that the plan sets on it
  std::vector<std::string> values;
  std::vector<CUlaunchAttribute> attributes;
  // Into `values`, in the order of the parameters.
  std::vector<void*> pointers();
};
Result<KernelNode> kernel_node(const CudaDriver& cu, CUmodule module, const PlanNode& node,
                               const AddressLayout& layout);
Result<CUDA_MEMCPY3D> memcpy_node(const PlanNode& node, const AddressLayout& layout);
Result<CUDA_MEMSET_NODE_PARAMS> memset_node(const PlanNode& node, const AddressLayout& layout);

// "the launch plan does not fit its code: ...".
tl::unexpected<Error> plan_misfit(const std::string& what);
// The same for a call that the driver refused; kEnvironment where no plan would do better: no
// memory is left, the GPU is at fault, or an earlier kernel broke the context.
tl::unexpected<Error> plan_misfit(const std::string& what, CUresult refused);

}  // namespace kernelpro

#endif
