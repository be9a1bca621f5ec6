// SPDX-License-Identifier: Apache-2.0
#if KERNELPRO_HAVE_CUDA

#include <algorithm>
#include <cstring>

#include "measure/worker/cuda/capture.h"

namespace kernelpro {

namespace {

using Fault = tl::unexpected<CaptureFault>;

Fault fault(std::string rule, std::string reason) {
  return Fault(CaptureFault{std::move(rule), std::move(reason)});
}

Fault driver_fault(const char* what, CUresult result) {
  return fault("capture", std::string(what) + ": " + cuda_error_text(result));
}

std::string node_type_name(CUgraphNodeType type) {
  switch (type) {
    case CU_GRAPH_NODE_TYPE_HOST:
      return "a host function (cudaLaunchHostFunc)";
    case CU_GRAPH_NODE_TYPE_GRAPH:
      return "a child graph";
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
      return "an allocation (cudaMallocAsync); use args.workspace";
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
      return "a deallocation (cudaFreeAsync); use args.workspace";
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
      return "an external event";
    case CU_GRAPH_NODE_TYPE_CONDITIONAL:
      return "a conditional node";
    default:
      return "a node of type " + std::to_string(static_cast<int>(type));
  }
}

class Exporter {
 public:
  Exporter(const CudaDriver& cu, const AddressLayout& layout, CaptureSurroundings* surroundings)
      : cu_(cu), layout_(layout), surroundings_(surroundings) {}

  tl::expected<PlanNode, CaptureFault> node(CUgraphNode handle) {
    CUgraphNodeType type{};
    const CUresult result = cu_.GraphNodeGetType(handle, &type);
    if (result != CUDA_SUCCESS) return driver_fault("a node's type", result);
    switch (type) {
      case CU_GRAPH_NODE_TYPE_KERNEL:
        return kernel(handle);
      case CU_GRAPH_NODE_TYPE_MEMCPY:
        return memcpy_node(handle);
      case CU_GRAPH_NODE_TYPE_MEMSET:
        return memset_node(handle);
      case CU_GRAPH_NODE_TYPE_EMPTY:
        return PlanNode{};
      default:
        return fault("graph-node", "launch does something that a launch plan cannot hold: " +
                                       node_type_name(type));
    }
  }

 private:
  // The CUDA runtime returns kernels as CUkernel, the driver API as CUfunction.
  CUresult parameter_info(const CUDA_KERNEL_NODE_PARAMS& p, std::size_t i, std::size_t* offset,
                          std::size_t* size) const {
    return p.func != nullptr ? cu_.FuncGetParamInfo(p.func, i, offset, size)
                             : cu_.KernelGetParamInfo(p.kern, i, offset, size);
  }
  int attribute(const CUDA_KERNEL_NODE_PARAMS& p, CUfunction_attribute id, int otherwise) const {
    int value = otherwise;
    CUdevice device = 0;
    const CUresult result = p.func != nullptr ? cu_.FuncGetAttribute(&value, id, p.func)
                                              : cu_.KernelGetAttribute(&value, id, p.kern, device);
    return result == CUDA_SUCCESS ? value : otherwise;
  }

  tl::expected<PlanNode, CaptureFault> kernel(CUgraphNode handle) {
    CUDA_KERNEL_NODE_PARAMS p{};
    CUresult result = cu_.GraphKernelNodeGetParams(handle, &p);
    if (result != CUDA_SUCCESS) return driver_fault("a kernel node", result);
    PlanNode n;
    n.kind = PlanNode::Kind::kKernel;
    const char* name = nullptr;
    result = p.func != nullptr ? cu_.FuncGetName(&name, p.func) : cu_.KernelGetName(&name, p.kern);
    if (result != CUDA_SUCCESS || name == nullptr) return driver_fault("a kernel's name", result);
    n.function = name;
    if (surroundings_ != nullptr) {
      const auto image = surroundings_->image_of(p, n.function);
      if (!image) return Fault(image.error());
      n.image = *image;
    }
    n.grid = {p.gridDimX, p.gridDimY, p.gridDimZ};
    n.block = {p.blockDimX, p.blockDimY, p.blockDimZ};
    n.dynamic_shared = p.sharedMemBytes;
    n.max_dynamic_shared = attribute(p, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, -1);
    n.shared_carveout = attribute(p, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, -1);
    n.non_portable_cluster =
        attribute(p, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 0) != 0;
    read_attributes(handle, &n);
    if (const std::string other = unsupported_attribute(handle); !other.empty()) {
      return fault("launch-attribute", n.function + " is launched with " + other +
                                           ", which a launch plan cannot hold; leave it out");
    }
    for (std::size_t i = 0;; ++i) {
      std::size_t offset = 0, size = 0;
      if (parameter_info(p, i, &offset, &size) != CUDA_SUCCESS) break;
      PlanParameter parameter;
      if (p.kernelParams != nullptr) {
        parameter.bytes.assign(static_cast<const char*>(p.kernelParams[i]), size);
      } else {
        const char* packed = packed_parameters(p.extra);
        if (packed == nullptr)
          return fault("capture", n.function + ": its parameters cannot be read");
        parameter.bytes.assign(packed + offset, size);
      }
      const std::string foreign = foreign_address(parameter.bytes);
      if (!foreign.empty()) {
        return fault("foreign-memory",
                     "parameter " + std::to_string(i) + " of " + n.function + " holds " + foreign +
                         ", which is neither a tensor nor the workspace; use args.workspace "
                         "(task.toml declares its size)");
      }
      n.parameters.push_back(std::move(parameter));
    }
    return n;
  }

  static const char* packed_parameters(void** extra) {
    for (int i = 0; extra != nullptr && extra[i] != CU_LAUNCH_PARAM_END; i += 2) {
      if (extra[i] == CU_LAUNCH_PARAM_BUFFER_POINTER) return static_cast<const char*>(extra[i + 1]);
    }
    return nullptr;
  }

  void read_attributes(CUgraphNode handle, PlanNode* n) {
    CUlaunchAttributeValue value{};
    const auto get = [&](CUlaunchAttributeID id) {
      value = {};
      return cu_.GraphKernelNodeGetAttribute(handle, id, &value) == CUDA_SUCCESS;
    };
    if (get(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) && value.clusterDim.x != 0) {
      n->cluster = {value.clusterDim.x, value.clusterDim.y, value.clusterDim.z};
    }
    if (get(CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE) &&
        value.clusterSchedulingPolicyPreference != CU_CLUSTER_SCHEDULING_POLICY_DEFAULT) {
      n->cluster_policy = value.clusterSchedulingPolicyPreference;
    }
    if (get(CU_LAUNCH_ATTRIBUTE_COOPERATIVE)) n->cooperative = value.cooperative != 0;
    if (get(CU_LAUNCH_ATTRIBUTE_PRIORITY)) n->priority = value.priority;
  }

  // Attributes that change the launch and cannot be kept: refused by name rather than dropped.
  std::string unsupported_attribute(CUgraphNode handle) const {
    CUlaunchAttributeValue value{};
    const auto get = [&](CUlaunchAttributeID id) {
      value = {};
      return cu_.GraphKernelNodeGetAttribute(handle, id, &value) == CUDA_SUCCESS;
    };
    if (get(CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW) && value.accessPolicyWindow.num_bytes != 0) {
      return "an access policy window";
    }
    if (get(CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN) &&
        value.memSyncDomain != CU_LAUNCH_MEM_SYNC_DOMAIN_DEFAULT) {
      return "a memory synchronisation domain";
    }
#if CUDA_VERSION >= 12080
    if (get(CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION) &&
        value.preferredClusterDim.x * value.preferredClusterDim.y * value.preferredClusterDim.z >
            1) {
      return "a preferred cluster size";
    }
#endif
    if (get(CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE) &&
        value.deviceUpdatableKernelNode.deviceUpdatable != 0) {
      return "a node that device code can update";
    }
    return "";
  }

  bool inside(std::uint64_t address) const {
    return layout_.contains(address) || (surroundings_ != nullptr && surroundings_->holds(address));
  }

  // Checks every aligned 8-byte word: is it an address outside the layout known to the driver?
  std::string foreign_address(const std::string& bytes) const {
    for (std::size_t at = 0; at + 8 <= bytes.size(); at += 8) {
      std::uint64_t word = 0;
      std::memcpy(&word, bytes.data() + at, sizeof word);
      if (word < 0x10000 || inside(word)) continue;
      unsigned type = 0;
      if (cu_.PointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, word) == CUDA_SUCCESS) {
        if (type == CU_MEMORYTYPE_HOST && surroundings_ != nullptr) continue;
        return type == CU_MEMORYTYPE_HOST
                   ? "the address of host memory"
                   : "the address of device memory that the candidate allocated or declared itself";
      }
    }
    return "";
  }

  tl::expected<PlanParameter, CaptureFault> address(std::uint64_t value, const char* what) {
    if (!inside(value)) {
      return fault("foreign-memory", std::string(what) +
                                         " touches memory that is neither a tensor "
                                         "nor the workspace; use args.workspace");
    }
    PlanParameter p;
    p.bytes.assign(reinterpret_cast<const char*>(&value), sizeof value);
    return p;
  }

  tl::expected<PlanNode, CaptureFault> memcpy_node(CUgraphNode handle) {
    CUDA_MEMCPY3D c{};
    const CUresult result = cu_.GraphMemcpyNodeGetParams(handle, &c);
    if (result != CUDA_SUCCESS) return driver_fault("a copy", result);
    const auto device = [](CUmemorytype type) {
      return type == CU_MEMORYTYPE_DEVICE || type == CU_MEMORYTYPE_UNIFIED;
    };
    if (!device(c.srcMemoryType) || !device(c.dstMemoryType)) {
      return fault("host-copy",
                   "launch copies to or from host memory; only device copies are "
                   "part of a launch plan");
    }
    PlanNode n;
    n.kind = PlanNode::Kind::kMemcpy;
    const auto source = address(
        c.srcDevice + c.srcXInBytes + (c.srcZ * c.srcHeight + c.srcY) * c.srcPitch, "a copy");
    const auto destination = address(
        c.dstDevice + c.dstXInBytes + (c.dstZ * c.dstHeight + c.dstY) * c.dstPitch, "a copy");
    if (!source) return Fault(source.error());
    if (!destination) return Fault(destination.error());
    n.source = *source;
    n.destination = *destination;
    n.source_pitch = c.srcPitch;
    n.source_height = c.srcHeight;
    n.destination_pitch = c.dstPitch;
    n.destination_height = c.dstHeight;
    n.width = c.WidthInBytes;
    n.height = std::max<std::size_t>(c.Height, 1);
    n.depth = std::max<std::size_t>(c.Depth, 1);
    return n;
  }

  tl::expected<PlanNode, CaptureFault> memset_node(CUgraphNode handle) {
    CUDA_MEMSET_NODE_PARAMS m{};
    const CUresult result = cu_.GraphMemsetNodeGetParams(handle, &m);
    if (result != CUDA_SUCCESS) return driver_fault("a memset", result);
    const auto destination = address(m.dst, "a memset");
    if (!destination) return Fault(destination.error());
    PlanNode n;
    n.kind = PlanNode::Kind::kMemset;
    n.destination = *destination;
    n.destination_pitch = m.pitch;
    n.value = m.value;
    n.element_bytes = m.elementSize;
    n.width = m.width;
    n.height = std::max<std::size_t>(m.height, 1);
    return n;
  }

  const CudaDriver& cu_;
  const AddressLayout& layout_;
  CaptureSurroundings* surroundings_;
};

}  // namespace

tl::expected<LaunchPlan, CaptureFault> export_graph(const CudaDriver& cu, CUgraph graph,
                                                    const AddressLayout& layout,
                                                    CaptureSurroundings* surroundings) {
  std::size_t count = 0;
  CUresult result = cu.GraphGetNodes(graph, nullptr, &count);
  if (result != CUDA_SUCCESS) return driver_fault("the captured graph", result);
  std::vector<CUgraphNode> handles(count);
  if (count > 0) result = cu.GraphGetNodes(graph, handles.data(), &count);
  if (result != CUDA_SUCCESS) return driver_fault("the captured graph", result);
  LaunchPlan plan;
  Exporter exporter(cu, layout, surroundings);
  for (const CUgraphNode handle : handles) {
    auto node = exporter.node(handle);
    if (!node) return Fault(node.error());
    plan.nodes.push_back(std::move(*node));
  }
  std::size_t edges = 0;
  result = cu.GraphGetEdges(graph, nullptr, nullptr, nullptr, &edges);
  if (result != CUDA_SUCCESS) return driver_fault("the graph's edges", result);
  std::vector<CUgraphNode> from(edges), to(edges);
  std::vector<CUgraphEdgeData> data(edges);
  if (edges > 0) result = cu.GraphGetEdges(graph, from.data(), to.data(), data.data(), &edges);
  if (result != CUDA_SUCCESS) return driver_fault("the graph's edges", result);
  const auto index = [&](CUgraphNode handle) {
    return static_cast<int>(std::find(handles.begin(), handles.end(), handle) - handles.begin());
  };
  for (std::size_t i = 0; i < edges; ++i) {
    plan.edges.push_back(
        {index(from[i]), index(to[i]), data[i].from_port, data[i].to_port, data[i].type});
  }
  return plan;
}

}  // namespace kernelpro

#endif
