// SPDX-License-Identifier: Apache-2.0
// The launch plan: what is trusted instead of a candidate's host code. A directed acyclic graph of
// kernel launches, device copies, memsets and empty nodes over buffers at agreed addresses.
//
// Made in one of two ways: captured from `launch` in a process of its own (host form), or read out
// of the compiled device code (plan form). The worker rebuilds the CUDA graph from it, anew for
// each check, and never loads the candidate's host code. docs/launch-plan.md tells the whole story.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace kernelpro {

// What a tensor map says, but for its address: the arguments of cuTensorMapEncodeTiled. Sizes and
// box are elements, the contiguous dimension first; strides are bytes, of the second dimension on.
struct PlanTensorMap {
  int type = 0;  // CUtensorMapDataType, without those of sub-byte elements
  int rank = 1;  // 1 to 5
  std::array<std::int64_t, 5> sizes{};
  std::array<std::int64_t, 5> strides{};
  std::array<std::int32_t, 5> box{};
  int swizzle = 0;  // CUtensorMapSwizzle: none, 32, 64 or 128 bytes
  // What the driver would refuse, or "".
  std::string problem() const;
};
inline constexpr std::size_t kTensorMapBytes = 128;

// One kernel parameter: raw bytes, into which addresses are written before use.
struct PlanParameter {
  enum class Kind {
    kBytes,      // as they are
    kTensor,     // address of Args tensor `index` plus `offset`
    kWorkspace,  // address of the workspace plus `offset`
  };
  Kind kind = Kind::kBytes;
  int index = 0;
  std::int64_t offset = 0;
  std::string bytes;  // kBytes; captured plans hold final addresses in here
  // Not the address but a tensor map of it: kTensor and kWorkspace of the plan form. Captured plans
  // have theirs encoded, in `bytes`.
  std::optional<PlanTensorMap> map = {};
};

struct PlanNode {
  enum class Kind { kKernel, kMemcpy, kMemset, kEmpty };
  Kind kind = Kind::kEmpty;

  // kKernel. Attribute values are those of the CUDA driver API.
  std::string function;  // mangled name in the cubin
  std::array<std::uint32_t, 3> grid{1, 1, 1};
  std::array<std::uint32_t, 3> block{1, 1, 1};
  std::array<std::uint32_t, 3> cluster{0, 0, 0};  // 0: none
  std::uint32_t dynamic_shared = 0;               // bytes
  std::int32_t max_dynamic_shared =
      -1;                             // CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES; -1 unset
  std::int32_t shared_carveout = -1;  // CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT
  bool non_portable_cluster = false;
  bool cooperative = false;
  std::int32_t cluster_policy = -1;  // CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE
  std::int32_t priority = 0;
  std::vector<PlanParameter> parameters;

  // kMemcpy, kMemset: within the tensors and the workspace. Pitches and rows as cuMemsetD2D* and
  // CUDA_MEMCPY3D have them.
  PlanParameter destination;  // an address
  PlanParameter source;       // an address
  std::uint64_t width = 0;    // bytes for copies; elements for memsets
  std::uint64_t height = 1;
  std::uint64_t depth = 1;
  std::uint64_t destination_pitch = 0;
  std::uint64_t destination_height = 0;
  std::uint64_t source_pitch = 0;
  std::uint64_t source_height = 0;
  std::uint32_t value = 0;
  std::uint32_t element_bytes = 1;  // memset: 1, 2 or 4
};

struct PlanEdge {
  int from = 0;  // index into nodes
  int to = 0;
  // CUgraphEdgeData: programmatic dependent launches have ports and a type.
  int from_port = 0;
  int to_port = 0;
  int type = 0;
};

struct LaunchPlan {
  std::vector<PlanNode> nodes;
  std::vector<PlanEdge> edges;
  int kernel_count() const;
  // Whether each node but the first waits for the end of the one before it, so that no two run side
  // by side.
  bool one_after_another() const;
  // Why this plan cannot be trusted to run (a cycle, an edge to nowhere, no kernel, sizes out of
  // range), or "". Plans come from a process that ran candidate code: nothing in them is believed.
  std::string problem() const;
};

std::string plan_to_json(const LaunchPlan& plan);
// nullopt when the text is not a plan. Any bytes are safe.
std::optional<LaunchPlan> plan_from_json(const std::string& json);

// Where the buffers of one case lie, the same in the capture process, the worker and the judge's
// reference. Tensors are placed so that the end of each is followed by unmapped memory: an overrun
// faults. `granularity`: of physical memory (2 MiB on current GPUs).
struct AddressLayout {
  struct Slot {
    std::uint64_t address = 0;        // of the first element
    std::uint64_t bytes = 0;          // of the tensor
    std::uint64_t mapping = 0;        // start of the mapped range
    std::uint64_t mapping_bytes = 0;  // a multiple of the granularity
  };
  std::uint64_t base = 0;
  std::uint64_t reserve_bytes = 0;
  std::vector<Slot> slots;  // Args tensors in order, then the workspace if it has bytes
  bool has_workspace = false;
};

// `sizes`: bytes of each tensor in order of Args; `workspace`: bytes, may be 0. The last bytes of a
// slot's mapping up to `bytes` rounded to 256 hold the tensor; alignment of addresses is 256.
AddressLayout make_layout(const std::vector<std::uint64_t>& sizes, std::uint64_t workspace,
                          std::uint64_t granularity, std::uint64_t base);

// The bytes of a parameter with addresses filled in; of a tensor map, its address.
std::string parameter_bytes(const PlanParameter& parameter, const AddressLayout& layout);

}  // namespace kernelpro
