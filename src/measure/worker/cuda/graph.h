// SPDX-License-Identifier: Apache-2.0
// A CUDA graph rebuilt from a launch plan and its cubins, without the candidate's host code.
#pragma once

#if KERNELPRO_HAVE_CUDA

#include <span>
#include <string>
#include <vector>

#include "core/plan/launch_plan.h"
#include "machine/driver/cuda_driver.h"

namespace kernelpro {

// Modules and an executable graph over them; the object owns both. One thread, current context.
class ReplayGraph {
 public:
  // Loads the images (cubins) anew, so that their globals are fresh, and builds the graph. Fails
  // with kBadInput when the plan does not fit them (no such function, wrong parameters, an address
  // outside `layout`), with the mismatch in the message.
  static Result<ReplayGraph> build(const CudaDriver& cu, std::span<const std::string> images,
                                   const LaunchPlan& plan, const AddressLayout& layout);
  static Result<ReplayGraph> build(const CudaDriver& cu, const std::string& cubin,
                                   const LaunchPlan& plan, const AddressLayout& layout) {
    return build(cu, std::span(&cubin, 1), plan, layout);
  }
  ReplayGraph() = default;
  ReplayGraph(ReplayGraph&& other) noexcept;
  ReplayGraph& operator=(ReplayGraph&& other) noexcept;
  ~ReplayGraph();

  // Blocks of this node's kernel that one multiprocessor holds at once; 0 if unknown.
  int resident_blocks(const PlanNode& node) const;

  // Largest local memory per thread over the kernels, in bytes.
  int local_bytes() const { return local_bytes_; }

  // Does the work of a first launch: the next launch only launches.
  CUresult upload(CUstream stream) const {
    return empty() ? CUDA_ERROR_INVALID_HANDLE : cu_->GraphUpload(exec_, stream);
  }
  CUresult launch(CUstream stream) const {
    return empty() ? CUDA_ERROR_INVALID_HANDLE : cu_->GraphLaunch(exec_, stream);
  }
  bool empty() const { return cu_ == nullptr; }  // made by the default constructor

 private:
  const CudaDriver* cu_ = nullptr;
  std::vector<CUmodule> modules_;  // by image
  CUgraphExec exec_ = nullptr;
  int local_bytes_ = 0;
};

}  // namespace kernelpro

#endif
