// SPDX-License-Identifier: Apache-2.0
// Runs the nodes of a launch plan one by one, as a profiler needs: it cannot distinguish the
// kernels of a launched graph. One thread, current context.
#pragma once

#if KERNELPRO_HAVE_CUDA

#include <span>
#include <string>
#include <vector>

#include "core/evidence/counters.h"
#include "core/plan/launch_plan.h"
#include "machine/driver/cuda_driver.h"
#include "measure/worker/cuda/node.h"

namespace kernelpro {

// Nodes in dependency order, by index where there is a choice. REQUIRES: the plan has no cycle
// (LaunchPlan::problem).
std::vector<int> plan_order(const LaunchPlan& plan);

// The kernel nodes to profile, in that order: all, or at most `most`: the longest launch of each
// kernel, then further launches, the longest first. `us`: each node's time; empty: unknown, and
// then the first launch of each kernel and the largest grids stand for the longest.
std::vector<int> chosen_launches(const LaunchPlan& plan, std::size_t most,
                                 const std::vector<double>& us = {});

// Adds the plan's kernels that are not among the counted `launches`, with their time alone. `us`:
// of each node, from its start to the next one's (PlanSubjects::node_times); what starting a kernel
// adds to it is the median difference between counters and the typical time of launches that are
// alike. Nothing is added without times.
void add_timed_launches(const LaunchPlan& plan, const std::vector<double>& us,
                        std::vector<LaunchCounters>* launches);

// Modules of the plan's code with every node prepared.
class PlanLauncher {
 public:
  // Fails with kBadInput when the plan does not fit the images (cubins).
  static Result<PlanLauncher> build(const CudaDriver& cu, std::span<const std::string> images,
                                    const LaunchPlan& plan, const AddressLayout& layout);
  static Result<PlanLauncher> build(const CudaDriver& cu, const std::string& cubin,
                                    const LaunchPlan& plan, const AddressLayout& layout) {
    return build(cu, std::span(&cubin, 1), plan, layout);
  }
  PlanLauncher() = default;
  PlanLauncher(PlanLauncher&& other) noexcept;
  PlanLauncher& operator=(PlanLauncher&& other) noexcept;
  ~PlanLauncher();

  // Runs nodes[index] with all its launch attributes. Programmatic edges become stream order: a
  // kernel measured alone has nothing to overlap with.
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
  std::vector<CUmodule> modules_;  // by image
  std::vector<Node> nodes_;
};

}  // namespace kernelpro

#endif
