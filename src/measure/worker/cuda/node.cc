// SPDX-License-Identifier: Apache-2.0
#include "measure/worker/cuda/node.h"

#if KERNELPRO_HAVE_CUDA

#include <array>
#include <cstring>
#include <utility>

namespace kernelpro {

namespace {

Result<CUfunction> function_of(const CudaDriver& cu, CUmodule module, const PlanNode& node) {
  CUfunction f = nullptr;
  const CUresult found = cu.ModuleGetFunction(&f, module, node.function.c_str());
  if (found == CUDA_ERROR_NOT_FOUND) {
    return plan_misfit("the kernel " + node.function +
                       " is not in the cubin (a library's kernel?)");
  }
  if (found != CUDA_SUCCESS) return plan_misfit(node.function, found);
  const auto set = [&](CUfunction_attribute attribute, int value) {
    return value < 0 ? CUDA_SUCCESS : cu.FuncSetAttribute(f, attribute, value);
  };
  int shared = node.max_dynamic_shared;
  // Above 48 KB a launch needs the attribute; the plan form does not state it.
  if (shared < 0 && node.dynamic_shared > 48 * 1024) shared = static_cast<int>(node.dynamic_shared);
  if (set(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, shared) != CUDA_SUCCESS) {
    return plan_misfit(node.function + " asks for " + std::to_string(shared) +
                       " bytes of dynamic shared memory, more than the GPU gives");
  }
  KP_CUDA_TRY(set(CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, node.shared_carveout));
  KP_CUDA_TRY(
      set(CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, node.non_portable_cluster ? 1 : -1));
  return f;
}

// The tensor map of a plan-form parameter, as the driver encodes it for this layout.
Result<std::string> encoded(const CudaDriver& cu, const PlanParameter& parameter,
                            const AddressLayout& layout) {
  const PlanTensorMap& map = *parameter.map;
  std::uint64_t address = 0;
  std::memcpy(&address, parameter_bytes(parameter, layout).data(), sizeof address);
  std::array<cuuint64_t, 5> sizes{}, strides{};
  std::array<cuuint32_t, 5> box{}, steps{};
  for (std::size_t i = 0; i < 5; ++i) {
    sizes[i] = static_cast<cuuint64_t>(map.sizes[i]);
    strides[i] = static_cast<cuuint64_t>(map.strides[i]);
    box[i] = static_cast<cuuint32_t>(map.box[i]);
    steps[i] = 1;
  }
  CUtensorMap made{};
  static_assert(sizeof made == kTensorMapBytes);
  const CUresult result = cu.TensorMapEncodeTiled(
      &made, static_cast<CUtensorMapDataType>(map.type), static_cast<cuuint32_t>(map.rank),
      reinterpret_cast<void*>(address), sizes.data(), strides.data(), box.data(), steps.data(),
      CU_TENSOR_MAP_INTERLEAVE_NONE, static_cast<CUtensorMapSwizzle>(map.swizzle),
      CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (result != CUDA_SUCCESS) return plan_misfit("a tensor map", result);
  return std::string(reinterpret_cast<const char*>(&made), sizeof made);
}

// Parameter values with the sizes that the cubin declares.
Result<std::vector<std::string>> values_of(const CudaDriver& cu, CUfunction f, const PlanNode& node,
                                           const AddressLayout& layout) {
  std::vector<std::string> result;
  for (std::size_t i = 0;; ++i) {
    std::size_t offset = 0, size = 0;
    const CUresult found = cu.FuncGetParamInfo(f, i, &offset, &size);
    if (breaks_context(found)) return plan_misfit(node.function, found);
    if (found != CUDA_SUCCESS) break;
    if (i >= node.parameters.size()) {
      return plan_misfit(node.function + " takes more parameters than the plan gives");
    }
    const PlanParameter& parameter = node.parameters[i];
    std::string bytes = parameter_bytes(parameter, layout);
    if (parameter.map) {
      KP_ASSIGN(bytes, encoded(cu, parameter, layout));
    }
    if (bytes.size() != size) {
      return plan_misfit(node.function + ": parameter " + std::to_string(i) + " has " +
                         std::to_string(size) + " bytes, the plan gives " +
                         std::to_string(bytes.size()));
    }
    result.push_back(std::move(bytes));
  }
  if (result.size() != node.parameters.size()) {
    return plan_misfit(node.function + " takes fewer parameters than the plan gives");
  }
  return result;
}

std::vector<CUlaunchAttribute> attributes_of(const PlanNode& node) {
  std::vector<CUlaunchAttribute> all;
  const auto add = [&](CUlaunchAttributeID id) -> CUlaunchAttributeValue& {
    CUlaunchAttribute& attribute = all.emplace_back();
    attribute = {};
    attribute.id = id;
    return attribute.value;
  };
  if (node.cluster[0] != 0) {
    auto& cluster = add(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION).clusterDim;
    cluster.x = node.cluster[0];
    cluster.y = node.cluster[1];
    cluster.z = node.cluster[2];
  }
  if (node.cluster_policy >= 0) {
    add(CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE)
        .clusterSchedulingPolicyPreference =
        static_cast<CUclusterSchedulingPolicy>(node.cluster_policy);
  }
  if (node.cooperative) add(CU_LAUNCH_ATTRIBUTE_COOPERATIVE).cooperative = 1;
  if (node.priority != 0) add(CU_LAUNCH_ATTRIBUTE_PRIORITY).priority = node.priority;
  return all;
}

// An address that the layout contains, or 0. Unmapped addresses fault on access.
std::uint64_t address_of(const PlanParameter& parameter, const AddressLayout& layout) {
  const std::string bytes = parameter_bytes(parameter, layout);
  std::uint64_t value = 0;
  if (bytes.size() == sizeof value) std::memcpy(&value, bytes.data(), sizeof value);
  return layout.contains(value) ? value : 0;
}

}  // namespace

tl::unexpected<Error> plan_misfit(const std::string& what) {
  return fail(ErrorKind::kBadInput, "the launch plan does not fit its code: " + what,
              "this is a limit of the launch plan; docs/launch-plan.md lists what a plan can hold");
}

tl::unexpected<Error> plan_misfit(const std::string& what, CUresult refused) {
  if (refused != CUDA_ERROR_OUT_OF_MEMORY && !breaks_context(refused)) {
    return plan_misfit(what + ": " + cuda_error_text(refused));
  }
  return fail(ErrorKind::kEnvironment, what + ": " + cuda_error_text(refused),
              "run again; `kernelpro doctor` shows what this GPU and driver allow");
}

std::vector<void*> KernelNode::pointers() {
  std::vector<void*> all;
  for (std::string& value : values) all.push_back(value.data());
  return all;
}

Result<KernelNode> kernel_node(const CudaDriver& cu, CUmodule module, const PlanNode& node,
                               const AddressLayout& layout) {
  KP_ASSIGN(const CUfunction f, function_of(cu, module, node));
  KP_ASSIGN(std::vector<std::string> values, values_of(cu, f, node, layout));
  return KernelNode{f, std::move(values), attributes_of(node)};
}

Result<CUDA_MEMCPY3D> memcpy_node(const PlanNode& node, const AddressLayout& layout) {
  CUDA_MEMCPY3D copy{};
  copy.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.srcDevice = address_of(node.source, layout);
  copy.dstDevice = address_of(node.destination, layout);
  if (copy.srcDevice == 0 || copy.dstDevice == 0) {
    return plan_misfit("a copy outside the tensors and the workspace");
  }
  copy.srcPitch = node.source_pitch;
  copy.srcHeight = node.source_height;
  copy.dstPitch = node.destination_pitch;
  copy.dstHeight = node.destination_height;
  copy.WidthInBytes = node.width;
  copy.Height = node.height;
  copy.Depth = node.depth;
  return copy;
}

Result<CUDA_MEMSET_NODE_PARAMS> memset_node(const PlanNode& node, const AddressLayout& layout) {
  CUDA_MEMSET_NODE_PARAMS set{};
  set.dst = address_of(node.destination, layout);
  if (set.dst == 0) return plan_misfit("a memset outside the tensors and the workspace");
  set.pitch = node.destination_pitch;
  set.value = node.value;
  set.elementSize = node.element_bytes;
  set.width = node.width;
  set.height = node.height;
  return set;
}

}  // namespace kernelpro

#endif
