// SPDX-License-Identifier: Apache-2.0
// The launch plan, which is trusted instead of a candidate's host code: a directed acyclic graph of
// kernel launches, device copies, memsets and empty nodes over buffers at agreed addresses.
//
// It is captured from `launch` (host form) or from a PyTorch module's call in a separate process,
// or read from the compiled device code (plan form). The worker rebuilds the CUDA graph from it for
// each check and never loads the candidate's host code. See docs/launch-plan.md.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace kernelpro {

// A tensor map without its address: the arguments of cuTensorMapEncodeTiled. Sizes and box are in
// elements, contiguous dimension first; strides are in bytes, from the second dimension on.
struct PlanTensorMap {
  int type = 0;  // CUtensorMapDataType, except the sub-byte types
  int rank = 1;  // 1 to 5
  std::array<std::int64_t, 5> sizes{};
  std::array<std::int64_t, 5> strides{};
  std::array<std::int32_t, 5> box{};
  int swizzle = 0;  // CUtensorMapSwizzle: none, 32, 64 or 128 bytes
  // Why the driver would refuse it, or "".
  std::string problem() const;
};
inline constexpr std::size_t kTensorMapBytes = 128;

// One kernel parameter: raw bytes, with addresses filled in before use.
struct PlanParameter {
  enum class Kind {
    kBytes,      // as they are
    kTensor,     // address of Args tensor `index` plus `offset`
    kWorkspace,  // address of the workspace plus `offset`
  };
  Kind kind = Kind::kBytes;
  int index = 0;
  std::int64_t offset = 0;
  std::string bytes;  // kBytes; in captured plans, with final addresses
  // Set: a tensor map of the address instead of the address itself (kTensor and kWorkspace of the
  // plan form). Captured plans have theirs encoded in `bytes`.
  std::optional<PlanTensorMap> map = {};
};

struct PlanNode {
  enum class Kind { kKernel, kMemcpy, kMemset, kEmpty };
  Kind kind = Kind::kEmpty;

  // kKernel. Attribute values as in the CUDA driver API.
  std::string function;  // mangled name in the cubin
  int image = 0;         // which of the plan's cubins (Binary::images)
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

  // kMemcpy, kMemset: within the tensors and the workspace. Pitches and rows as in cuMemsetD2D* and
  // CUDA_MEMCPY3D.
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

// Bytes that stand in the scratch before every call: a table that a PyTorch module computed when it
// was constructed, which depends on neither inputs nor parameters.
struct PlanConstant {
  std::uint64_t offset = 0;  // in the scratch
  std::uint64_t bytes = 0;
  std::string file;  // path
};

struct LaunchPlan {
  std::vector<PlanNode> nodes;
  std::vector<PlanEdge> edges;
  // Memory at AddressLayout::scratch_base that the plan uses besides its case's buffers: what a
  // PyTorch module allocates during a call. The worker that runs it provides it and overwrites it
  // between calls.
  std::uint64_t scratch_bytes = 0;
  std::vector<PlanConstant> constants;
  int kernel_count() const;
  // Whether each node but the first waits for the previous one to end, so that no two overlap.
  bool one_after_another() const;
  // Why this plan cannot be trusted to run (a cycle, an edge to nowhere, no kernel, sizes out of
  // range), or "". Plans come from a process that ran candidate code: trust nothing in them.
  std::string problem() const;
};

std::string plan_to_json(const LaunchPlan& plan);
// nullopt when the text is not a plan. Safe on any bytes.
std::optional<LaunchPlan> plan_from_json(const std::string& json);

// From a layout's base to a plan's scratch: between the buffers of candidates and those of
// references (measure/worker/cuda/memory.h).
inline constexpr std::uint64_t kScratchOffset = 0x100000000000ull;

// Where the buffers of one case are. The judge's layout says how large they are; each worker and
// capture process has them elsewhere (`placed`). Unmapped memory follows the end of each tensor, so
// that an overrun faults. `granularity`: of physical memory (2 MiB on current GPUs).
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
  std::uint64_t scratch_bytes = 0;  // of the plan in use, at scratch_base; not in messages
  std::uint64_t scratch_base() const { return base + kScratchOffset; }
  // Whether it is an address that a plan may use.
  bool contains(std::uint64_t address) const {
    return address - base < reserve_bytes || address - scratch_base() < scratch_bytes;
  }
};

// `sizes`: bytes of each tensor in order of Args; `workspace`: bytes, may be 0. A tensor is at the
// end of its slot's mapping, with its size rounded up to 256; addresses are aligned to 256.
AddressLayout make_layout(const std::vector<std::uint64_t>& sizes, std::uint64_t workspace,
                          std::uint64_t granularity, std::uint64_t base);

// The same buffers at another base and at other distances from each other, both drawn from `place`,
// which is secret: code that has addresses, or a way from one buffer to the next, from anywhere but
// its parameters is wrong there. All cases have the same base. `place` 0: the layout as it is.
AddressLayout placed(const AddressLayout& layout, std::uint64_t place);

// The bytes of a parameter with addresses filled in; for a tensor map, its address.
std::string parameter_bytes(const PlanParameter& parameter, const AddressLayout& layout);

}  // namespace kernelpro
