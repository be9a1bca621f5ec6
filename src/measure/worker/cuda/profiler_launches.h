// SPDX-License-Identifier: Apache-2.0
// The nodes of a launch plan run one by one, as a profiler needs them: a launched graph has no
// kernels that it could tell apart. One thread, current context.
#pragma once

#if KERNELPRO_HAVE_CUDA

#include <string>
#include <vector>

#include "core/launch_plan.h"
#include "machine/driver/cuda_driver.h"
#include "measure/worker/cuda/node.h"

namespace kernelpro {

// Nodes in an order in which each comes after what it depends on, by index where there is a choice.
// REQUIRES: the plan has no cycle (LaunchPlan::problem).
std::vector<int> plan_order(const LaunchPlan& plan);

// The kernel nodes to be profiled, in that order: all, or at most `most` of them: the first launch
// of each kernel, then further launches by the size of their grids.
std::vector<int> chosen_launches(const LaunchPlan& plan, std::size_t most);

// A module of the plan's code with every node prepared.
class PlanLauncher {
 public:
  // Fails with kBadInput when the plan does not fit the cubin.
  static Result<PlanLauncher> build(const CudaDriver& cu, const std::string& cubin,
                                    const LaunchPlan& plan, const AddressLayout& layout);
  PlanLauncher() = default;
  PlanLauncher(PlanLauncher&& other) noexcept;
  PlanLauncher& operator=(PlanLauncher&& other) noexcept;
  ~PlanLauncher();

  // Runs nodes[index] with all its launch attributes. Programmatic edges are left to the stream's
  // order: a kernel that is measured alone has nothing to overlap with.
  CUresult launch(int index, CUstream stream);

 private:
  struct Node {
    PlanNode plan;
    KernelNode kernel;
    CUDA_MEMCPY3D copy{};
    CUDA_MEMSET_NODE_PARAMS set{};
  };
  CUresult launch_kernel(Node& node, CUstream stream) const;
  CUresult run_memset(const CUDA_MEMSET_NODE_PARAMS& set, CUstream stream) const;

  const CudaDriver* cu_ = nullptr;
  CUmodule module_ = nullptr;
  std::vector<Node> nodes_;
};

}  // namespace kernelpro

#endif
