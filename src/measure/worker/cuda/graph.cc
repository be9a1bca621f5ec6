// SPDX-License-Identifier: Apache-2.0
#include "measure/worker/cuda/graph.h"

#if KERNELPRO_HAVE_CUDA

#include <algorithm>
#include <utility>
#include <vector>

#include "measure/worker/cuda/node.h"

namespace kernelpro {

namespace {

Result<CUgraphNode> add_kernel(const CudaDriver& cu, CUmodule module, CUgraph graph,
                               const PlanNode& node, const AddressLayout& layout) {
  KP_ASSIGN(KernelNode kernel, kernel_node(cu, module, node, layout));
  std::vector<void*> pointers = kernel.pointers();
  CUDA_KERNEL_NODE_PARAMS params{};
  params.func = kernel.function;
  params.gridDimX = node.grid[0];
  params.gridDimY = node.grid[1];
  params.gridDimZ = node.grid[2];
  params.blockDimX = node.block[0];
  params.blockDimY = node.block[1];
  params.blockDimZ = node.block[2];
  params.sharedMemBytes = node.dynamic_shared;
  params.kernelParams = pointers.data();
  CUgraphNode made = nullptr;
  CUresult result = cu.GraphAddKernelNode(&made, graph, nullptr, 0, &params);
  for (const CUlaunchAttribute& attribute : kernel.attributes) {
    if (result != CUDA_SUCCESS) break;
    result = cu.GraphKernelNodeSetAttribute(made, attribute.id, &attribute.value);
  }
  if (result != CUDA_SUCCESS) return plan_misfit(node.function, result);
  return made;
}

Result<CUgraphNode> add_memcpy(const CudaDriver& cu, CUgraph graph, const PlanNode& node,
                               const AddressLayout& layout) {
  KP_ASSIGN(const CUDA_MEMCPY3D copy, memcpy_node(node, layout));
  CUgraphNode made = nullptr;
  CUcontext current = nullptr;
  KP_CUDA_TRY(cu.CtxGetCurrent(&current));
  const CUresult result = cu.GraphAddMemcpyNode(&made, graph, nullptr, 0, &copy, current);
  if (result != CUDA_SUCCESS) return plan_misfit("a copy", result);
  return made;
}

Result<CUgraphNode> add_memset(const CudaDriver& cu, CUgraph graph, const PlanNode& node,
                               const AddressLayout& layout) {
  KP_ASSIGN(const CUDA_MEMSET_NODE_PARAMS set, memset_node(node, layout));
  CUgraphNode made = nullptr;
  CUcontext current = nullptr;
  KP_CUDA_TRY(cu.CtxGetCurrent(&current));
  const CUresult result = cu.GraphAddMemsetNode(&made, graph, nullptr, 0, &set, current);
  if (result != CUDA_SUCCESS) return plan_misfit("a memset", result);
  return made;
}

Result<CUgraphNode> add(const CudaDriver& cu, const std::vector<CUmodule>& modules, CUgraph graph,
                        const PlanNode& node, const AddressLayout& layout) {
  switch (node.kind) {
    case PlanNode::Kind::kKernel: {
      const auto image = static_cast<std::size_t>(node.image);
      if (image >= modules.size()) return plan_misfit(node.function + " is in no image");
      return add_kernel(cu, modules[image], graph, node, layout);
    }
    case PlanNode::Kind::kMemcpy:
      return add_memcpy(cu, graph, node, layout);
    case PlanNode::Kind::kMemset:
      return add_memset(cu, graph, node, layout);
    case PlanNode::Kind::kEmpty:
      break;
  }
  CUgraphNode made = nullptr;
  KP_CUDA_TRY(cu.GraphAddEmptyNode(&made, graph, nullptr, 0));
  return made;
}

Result<void> fill(const CudaDriver& cu, const std::vector<CUmodule>& modules, CUgraph graph,
                  const LaunchPlan& plan, const AddressLayout& layout) {
  std::vector<CUgraphNode> nodes;
  for (const PlanNode& node : plan.nodes) {
    KP_ASSIGN(CUgraphNode made, add(cu, modules, graph, node, layout));
    nodes.push_back(made);
  }
  for (const PlanEdge& edge : plan.edges) {
    CUgraphEdgeData data{};
    data.from_port = static_cast<unsigned char>(edge.from_port);
    data.to_port = static_cast<unsigned char>(edge.to_port);
    data.type = static_cast<unsigned char>(edge.type);
    const CUresult result =
        cu.GraphAddDependencies(graph, &nodes[static_cast<std::size_t>(edge.from)],
                                &nodes[static_cast<std::size_t>(edge.to)], &data, 1);
    if (result != CUDA_SUCCESS) return plan_misfit("an edge", result);
  }
  return {};
}

}  // namespace

Result<ReplayGraph> ReplayGraph::build(const CudaDriver& cu, std::span<const std::string> images,
                                       const LaunchPlan& plan, const AddressLayout& layout) {
  const std::string problem = plan.problem();
  if (!problem.empty()) return plan_misfit(problem);
  ReplayGraph replay;
  replay.cu_ = &cu;
  CUresult result = CUDA_SUCCESS;
  for (const std::string& image : images) {
    CUmodule module = nullptr;
    result = cu.ModuleLoadData(&module, image.data());
    if (result != CUDA_SUCCESS) return plan_misfit("the cubin does not load", result);
    replay.modules_.push_back(module);
  }
  CUgraph graph = nullptr;
  KP_CUDA_TRY(cu.GraphCreate(&graph, 0));
  const Result<void> filled = fill(cu, replay.modules_, graph, plan, layout);
  if (filled) result = cu.GraphInstantiate(&replay.exec_, graph, 0);
  cu.GraphDestroy(graph);
  if (!filled) return tl::unexpected<Error>(filled.error());
  if (result != CUDA_SUCCESS) return plan_misfit("the graph", result);
  for (const PlanNode& node : plan.nodes) {
    CUfunction f = nullptr;
    int bytes = 0;
    if (node.kind == PlanNode::Kind::kKernel &&
        cu.ModuleGetFunction(&f, replay.modules_[static_cast<std::size_t>(node.image)],
                             node.function.c_str()) == CUDA_SUCCESS &&
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
  const auto image = static_cast<std::size_t>(node.image);
  if (image >= modules_.size() ||
      cu_->ModuleGetFunction(&f, modules_[image], node.function.c_str()) != CUDA_SUCCESS ||
      cu_->OccupancyMaxActiveBlocksPerMultiprocessor(&blocks, f, threads, node.dynamic_shared) !=
          CUDA_SUCCESS) {
    return 0;
  }
  return blocks;
}

ReplayGraph::ReplayGraph(ReplayGraph&& other) noexcept { *this = std::move(other); }

ReplayGraph& ReplayGraph::operator=(ReplayGraph&& other) noexcept {
  std::swap(cu_, other.cu_);
  std::swap(modules_, other.modules_);
  std::swap(exec_, other.exec_);
  std::swap(local_bytes_, other.local_bytes_);
  return *this;
}

ReplayGraph::~ReplayGraph() {
  if (cu_ == nullptr) return;
  if (exec_ != nullptr) cu_->GraphExecDestroy(exec_);
  for (const CUmodule module : modules_) cu_->ModuleUnload(module);
}

}  // namespace kernelpro

#endif
