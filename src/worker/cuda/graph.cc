// SPDX-License-Identifier: Apache-2.0
#include "worker/cuda/graph.h"

#if KERNELPRO_HAVE_CUDA

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>
#include <vector>

namespace kernelpro {

namespace {

constexpr const char* kPlanNext =
    "this is a limit of the launch plan; docs/launch-plan.md lists what a plan can hold";

tl::unexpected<Error> misfit(const std::string& what) {
  return fail(ErrorKind::kBadInput, "the launch plan does not fit its code: " + what, kPlanNext);
}

// Builds one graph; keeps what must live until instantiation.
class Builder {
 public:
  Builder(const CudaDriver& cu, CUmodule module, CUgraph graph, const AddressLayout& layout)
      : cu_(cu), module_(module), graph_(graph), layout_(layout) {}

  Result<CUgraphNode> add(const PlanNode& node) {
    switch (node.kind) {
      case PlanNode::Kind::kKernel:
        return add_kernel(node);
      case PlanNode::Kind::kMemcpy:
        return add_memcpy(node);
      case PlanNode::Kind::kMemset:
        return add_memset(node);
      case PlanNode::Kind::kEmpty:
        break;
    }
    CUgraphNode made = nullptr;
    KP_CUDA_TRY(cu_.GraphAddEmptyNode(&made, graph_, nullptr, 0));
    return made;
  }

 private:
  Result<CUfunction> function(const PlanNode& node) {
    CUfunction f = nullptr;
    if (cu_.ModuleGetFunction(&f, module_, node.function.c_str()) != CUDA_SUCCESS) {
      return misfit("the kernel " + node.function + " is not in the cubin (a library's kernel?)");
    }
    const auto set = [&](CUfunction_attribute attribute, int value) {
      return value < 0 ? CUDA_SUCCESS : cu_.FuncSetAttribute(f, attribute, value);
    };
    int shared = node.max_dynamic_shared;
    // Above 48 KB a launch needs the attribute; the plan form does not state it.
    if (shared < 0 && node.dynamic_shared > 48 * 1024)
      shared = static_cast<int>(node.dynamic_shared);
    if (set(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, shared) != CUDA_SUCCESS) {
      return misfit(node.function + " asks for " + std::to_string(shared) +
                    " bytes of dynamic shared memory, more than the GPU gives");
    }
    KP_CUDA_TRY(set(CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, node.shared_carveout));
    KP_CUDA_TRY(set(CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED,
                    node.non_portable_cluster ? 1 : -1));
    return f;
  }

  // Parameter values with the sizes that the cubin declares.
  Result<std::vector<std::string>> values(const PlanNode& node, CUfunction f) {
    std::vector<std::string> result;
    for (std::size_t i = 0;; ++i) {
      std::size_t offset = 0, size = 0;
      if (cu_.FuncGetParamInfo(f, i, &offset, &size) != CUDA_SUCCESS) break;
      if (i >= node.parameters.size()) {
        return misfit(node.function + " takes more parameters than the plan gives");
      }
      std::string bytes = parameter_bytes(node.parameters[i], layout_);
      if (bytes.size() != size) {
        return misfit(node.function + ": parameter " + std::to_string(i) + " has " +
                      std::to_string(size) + " bytes, the plan gives " +
                      std::to_string(bytes.size()));
      }
      result.push_back(std::move(bytes));
    }
    if (result.size() != node.parameters.size()) {
      return misfit(node.function + " takes fewer parameters than the plan gives");
    }
    return result;
  }

  Result<CUgraphNode> add_kernel(const PlanNode& node) {
    Result<CUfunction> f = function(node);
    if (!f) return tl::unexpected<Error>(f.error());
    Result<std::vector<std::string>> bytes = values(node, *f);
    if (!bytes) return tl::unexpected<Error>(bytes.error());
    std::vector<void*> pointers;
    for (std::string& b : *bytes) pointers.push_back(b.data());
    CUDA_KERNEL_NODE_PARAMS params{};
    params.func = *f;
    params.gridDimX = node.grid[0];
    params.gridDimY = node.grid[1];
    params.gridDimZ = node.grid[2];
    params.blockDimX = node.block[0];
    params.blockDimY = node.block[1];
    params.blockDimZ = node.block[2];
    params.sharedMemBytes = node.dynamic_shared;
    params.kernelParams = pointers.data();
    CUgraphNode made = nullptr;
    const CUresult result = cu_.GraphAddKernelNode(&made, graph_, nullptr, 0, &params);
    if (result != CUDA_SUCCESS) return misfit(node.function + ": " + cuda_error_text(result));
    KP_TRY(set_attributes(node, made));
    return made;
  }

  Result<void> set_attributes(const PlanNode& node, CUgraphNode made) {
    const auto set = [&](CUlaunchAttributeID id,
                         const CUlaunchAttributeValue& value) -> Result<void> {
      const CUresult result = cu_.GraphKernelNodeSetAttribute(made, id, &value);
      if (result != CUDA_SUCCESS) return misfit(node.function + ": " + cuda_error_text(result));
      return {};
    };
    CUlaunchAttributeValue value{};
    if (node.cluster[0] != 0) {
      value.clusterDim.x = node.cluster[0];
      value.clusterDim.y = node.cluster[1];
      value.clusterDim.z = node.cluster[2];
      KP_TRY(set(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, value));
    }
    if (node.cluster_policy >= 0) {
      value = {};
      value.clusterSchedulingPolicyPreference =
          static_cast<CUclusterSchedulingPolicy>(node.cluster_policy);
      KP_TRY(set(CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE, value));
    }
    if (node.cooperative) {
      value = {};
      value.cooperative = 1;
      KP_TRY(set(CU_LAUNCH_ATTRIBUTE_COOPERATIVE, value));
    }
    if (node.priority != 0) {
      value = {};
      value.priority = node.priority;
      KP_TRY(set(CU_LAUNCH_ATTRIBUTE_PRIORITY, value));
    }
    return {};
  }

  // An address in the layout's range, or 0. What is unmapped there faults when it is touched.
  std::uint64_t address(const PlanParameter& parameter) const {
    const std::string bytes = parameter_bytes(parameter, layout_);
    std::uint64_t value = 0;
    if (bytes.size() == sizeof value) std::memcpy(&value, bytes.data(), sizeof value);
    const bool inside = value >= layout_.base && value < layout_.base + layout_.reserve_bytes;
    return inside ? value : 0;
  }

  Result<CUgraphNode> add_memcpy(const PlanNode& node) {
    CUDA_MEMCPY3D copy{};
    copy.srcMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.srcDevice = address(node.source);
    copy.dstDevice = address(node.destination);
    if (copy.srcDevice == 0 || copy.dstDevice == 0) {
      return misfit("a copy outside the tensors and the workspace");
    }
    copy.srcPitch = node.source_pitch;
    copy.srcHeight = node.source_height;
    copy.dstPitch = node.destination_pitch;
    copy.dstHeight = node.destination_height;
    copy.WidthInBytes = node.width;
    copy.Height = node.height;
    copy.Depth = node.depth;
    CUgraphNode made = nullptr;
    CUcontext current = nullptr;
    KP_CUDA_TRY(cu_.CtxGetCurrent(&current));
    const CUresult result = cu_.GraphAddMemcpyNode(&made, graph_, nullptr, 0, &copy, current);
    if (result != CUDA_SUCCESS) return misfit("a copy: " + cuda_error_text(result));
    return made;
  }

  Result<CUgraphNode> add_memset(const PlanNode& node) {
    CUDA_MEMSET_NODE_PARAMS set{};
    set.dst = address(node.destination);
    if (set.dst == 0) return misfit("a memset outside the tensors and the workspace");
    set.pitch = node.destination_pitch;
    set.value = node.value;
    set.elementSize = node.element_bytes;
    set.width = node.width;
    set.height = node.height;
    CUgraphNode made = nullptr;
    CUcontext current = nullptr;
    KP_CUDA_TRY(cu_.CtxGetCurrent(&current));
    const CUresult result = cu_.GraphAddMemsetNode(&made, graph_, nullptr, 0, &set, current);
    if (result != CUDA_SUCCESS) return misfit("a memset: " + cuda_error_text(result));
    return made;
  }

  const CudaDriver& cu_;
  CUmodule module_;
  CUgraph graph_;
  const AddressLayout& layout_;
};

Result<void> fill(const CudaDriver& cu, CUmodule module, CUgraph graph, const LaunchPlan& plan,
                  const AddressLayout& layout) {
  Builder builder(cu, module, graph, layout);
  std::vector<CUgraphNode> nodes;
  for (const PlanNode& node : plan.nodes) {
    Result<CUgraphNode> made = builder.add(node);
    if (!made) return tl::unexpected<Error>(made.error());
    nodes.push_back(*made);
  }
  for (const PlanEdge& edge : plan.edges) {
    CUgraphEdgeData data{};
    data.from_port = static_cast<unsigned char>(edge.from_port);
    data.to_port = static_cast<unsigned char>(edge.to_port);
    data.type = static_cast<unsigned char>(edge.type);
    const CUresult result =
        cu.GraphAddDependencies(graph, &nodes[static_cast<std::size_t>(edge.from)],
                                &nodes[static_cast<std::size_t>(edge.to)], &data, 1);
    if (result != CUDA_SUCCESS) return misfit("an edge: " + cuda_error_text(result));
  }
  return {};
}

}  // namespace

Result<ReplayGraph> ReplayGraph::build(const CudaDriver& cu, const std::string& cubin,
                                       const LaunchPlan& plan, const AddressLayout& layout) {
  const std::string problem = plan.problem();
  if (!problem.empty()) return misfit(problem);
  ReplayGraph replay;
  replay.cu_ = &cu;
  CUresult result = cu.ModuleLoadData(&replay.module_, cubin.data());
  if (result != CUDA_SUCCESS) return misfit("the cubin does not load: " + cuda_error_text(result));
  CUgraph graph = nullptr;
  KP_CUDA_TRY(cu.GraphCreate(&graph, 0));
  const Result<void> filled = fill(cu, replay.module_, graph, plan, layout);
  if (filled) result = cu.GraphInstantiate(&replay.exec_, graph, 0);
  cu.GraphDestroy(graph);
  if (!filled) return tl::unexpected<Error>(filled.error());
  if (result != CUDA_SUCCESS) return misfit("the graph: " + cuda_error_text(result));
  for (const PlanNode& node : plan.nodes) {
    CUfunction f = nullptr;
    int bytes = 0;
    if (node.kind == PlanNode::Kind::kKernel &&
        cu.ModuleGetFunction(&f, replay.module_, node.function.c_str()) == CUDA_SUCCESS &&
        cu.FuncGetAttribute(&bytes, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, f) == CUDA_SUCCESS) {
      replay.local_bytes_ = std::max(replay.local_bytes_, bytes);
    }
  }
  return replay;
}

int ReplayGraph::resident_blocks(const PlanNode& node) const {
  CUfunction f = nullptr;
  int blocks = 0;
  const int threads = static_cast<int>(node.block[0] * node.block[1] * node.block[2]);
  if (cu_->ModuleGetFunction(&f, module_, node.function.c_str()) != CUDA_SUCCESS ||
      cu_->OccupancyMaxActiveBlocksPerMultiprocessor(&blocks, f, threads, node.dynamic_shared) !=
          CUDA_SUCCESS) {
    return 0;
  }
  return blocks;
}

ReplayGraph::ReplayGraph(ReplayGraph&& other) noexcept { *this = std::move(other); }

ReplayGraph& ReplayGraph::operator=(ReplayGraph&& other) noexcept {
  std::swap(cu_, other.cu_);
  std::swap(module_, other.module_);
  std::swap(exec_, other.exec_);
  std::swap(local_bytes_, other.local_bytes_);
  return *this;
}

ReplayGraph::~ReplayGraph() {
  if (cu_ == nullptr) return;
  if (exec_ != nullptr) cu_->GraphExecDestroy(exec_);
  if (module_ != nullptr) cu_->ModuleUnload(module_);
}

}  // namespace kernelpro

#endif
