// SPDX-License-Identifier: Apache-2.0
// The plans that a supervisor has loaded to be profiled, and how a call of one runs node by node:
// shared by the roles that collect counters and samples. The verbs "open", "memory" and "load"
// (core/plan/protocol.h). One thread, current context. For .cc files only (JSON).
#pragma once

#if KERNELPRO_HAVE_CUDA

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/plan/launch_plan.h"
#include "measure/worker/cuda/cases.h"
#include "measure/worker/cuda/handles.h"
#include "measure/worker/cuda/kernels.h"
#include "measure/worker/cuda/message.h"
#include "measure/worker/cuda/profiler_launches.h"

namespace kernelpro {

struct PlanSubject {
  const OpenCase* c = nullptr;
  LaunchPlan plan;
  std::vector<std::string> constants;  // contents of the plan's
  PlanLauncher launcher;

  bool is_kernel(int node) const {
    return plan.nodes[static_cast<std::size_t>(node)].kind == PlanNode::Kind::kKernel;
  }
};

class PlanSubjects {
 public:
  // All must outlive the object.
  PlanSubjects(const CudaDriver& cu, const CudaContext& context, TrustedKernels* kernels)
      : cu_(cu), context_(context), kernels_(kernels), cases_(cu, context.device()) {}
  Result<void> start();

  Result<Json> open(WorkerCommand& command);
  Result<Json> memory(WorkerCommand& command) { return cases_.memory(command); }
  Result<Json> load(WorkerCommand& command);

  // The subject that the command names, with its set's memory and its scratch mapped.
  Result<PlanSubject*> of(const WorkerCommand& command);
  // Releases the scratch, which others may need, until the next `of`.
  void put_away() { scratch_.reset(); }

  // Empties L2; waits.
  Result<void> flush();
  // Before a call. A correct one writes only outputs, workspace and scratch, and reads of their old
  // contents only the plan's constants: those and the workspace's poison must be restored.
  Result<void> renew(const PlanSubject& subject);
  // Does not wait.
  Result<void> run(PlanSubject* subject, int node);
  // Waits.
  Result<void> run(PlanSubject* subject, const std::vector<int>& nodes);
  Result<void> wait();
  // Microseconds from the start of each node to the start of the next in a call, by node; waits.
  // Includes what starting a node costs. Empty for a plan with too many nodes.
  Result<std::vector<double>> node_times(PlanSubject* subject);
  CUstream stream() const { return stream_.get(); }

 private:
  const CudaDriver& cu_;
  const CudaContext& context_;
  TrustedKernels* kernels_;
  CudaStream stream_;
  DeviceMemory flush_;
  std::uint64_t flush_bytes_ = 0;
  OpenCases cases_;
  std::optional<FixedMemory> scratch_;
  std::map<std::string, PlanSubject> subjects_;
};

}  // namespace kernelpro

#endif
