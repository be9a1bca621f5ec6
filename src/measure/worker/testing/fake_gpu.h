// SPDX-License-Identifier: Apache-2.0
// For this room's tests, which are in this namespace: a fake GPU for each test, which must be left
// as it was found, and tasks and launch plans over two fp32 tensors, x and y.
#pragma once

#if KERNELPRO_HAVE_CUDA

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/files.h"
#include "base/json.h"
#include "base/text.h"
#include "core/plan/launch_plan.h"
#include "core/plan/protocol.h"
#include "machine/driver/cuda_driver.h"
#include "measure/worker/cuda/kernels.h"
#include "measure/worker/cuda/memory.h"
#include "measure/worker/cuda/nvrtc.h"
#include "measure/worker/testing/fake_driver.h"

namespace kernelpro::testing {

class FakeGpu : public ::testing::Test {
 protected:
  enum class Needs { kNothing, kJudgeKernels };
  explicit FakeGpu(Needs needs = Needs::kNothing) : needs_(needs) {}
  void SetUp() override {
#ifdef __SANITIZE_THREAD__
    GTEST_SKIP() << "ThreadSanitizer needs the addresses of the launch plan";
#endif
    fake::reset(true);
    ASSERT_TRUE(cuda_driver()) << cuda_driver().error().text();
    if (needs_ == Needs::kJudgeKernels && !cache_judge_kernels()) GTEST_SKIP() << "no NVRTC";
  }
  void TearDown() override {
    EXPECT_EQ(fake::alive(), "");
    EXPECT_EQ(join_text(fake::misuse(), "; "), "");
    fake::reset(false);
  }
  static const CudaDriver& cu() { return **cuda_driver(); }

  // The judge's kernels, where NVRTC's cubin would be; false without NVRTC.
  static bool cache_judge_kernels() {
    static const TempDir cache;
    ::setenv("KERNELPRO_CACHE", cache.path().c_str(), 1);
    const Result<std::string> path = trusted_cubin_path(TrustedKernels::source(), "sm_90a");
    return path && make_dirs(dirname(*path)) && write_file(*path, fake::judge_image());
  }

  // Runs `work` once for every driver call in it that can fail, with that call failing. Each time
  // it must say so, except for `optional` calls, and leave nothing behind. `work` returns whether
  // it succeeded.
  template <class Work>
  static void with_every_call_failing(Work work, const std::set<std::string>& optional = {}) {
    const std::string before = fake::alive();
    const std::uint64_t first = fake::calls();
    ASSERT_TRUE(work());
    const std::uint64_t count = fake::calls() - first;
    ASSERT_GT(count, 0u);
    for (std::uint64_t i = 0; i < count; ++i) {
      fake::fail_call(i, CUDA_ERROR_OUT_OF_MEMORY);
      const bool succeeded = work();
      EXPECT_TRUE(!succeeded || optional.count(fake::failed()) != 0)
          << "call " << i << ", " << fake::failed() << ", failed unnoticed";
      ASSERT_EQ(fake::alive(), before) << "after call " << i << ", " << fake::failed();
    }
  }

 private:
  const Needs needs_;
};

// With a context for the test's own driver calls.
class FakeContext : public FakeGpu {
 protected:
  using FakeGpu::FakeGpu;
  void SetUp() override {
    FakeGpu::SetUp();
    if (IsSkipped()) return;
    Result<CudaContext> opened = CudaContext::open();
    ASSERT_TRUE(opened) << opened.error().text();
    context = std::move(*opened);
  }
  void TearDown() override {
    context = CudaContext();
    FakeGpu::TearDown();
  }

  CudaContext context;
};

// x -> y, both of this many fp32 elements, in the case "toy".
inline Task two_vectors(std::int64_t elements) {
  Task task;
  task.tensors = {{"x", Role::kInput, DType::kFp32, {"N"}, {}, 0},
                  {"y", Role::kOutput, DType::kFp32, {"N"}, {}, 0}};
  task.cases = {Case{"toy", {{"N", elements}}, true, {}}};
  return task;
}

// As members of messages.
inline Json json_of(const AddressLayout& layout) { return *parse_json(layout_to_json(layout)); }
inline Json json_of(const LaunchPlan& plan) { return *parse_json(plan_to_json(plan)); }
// The tensors of the task's first case.
inline Json tensors_json(const Task& task) {
  return *parse_json(
      judge_tensors_to_json(judge_tensors(task, task.cases[0], Policy::kContract, true)));
}

inline AddressLayout toy_layout(std::uint64_t elements, std::uint64_t workspace = 0) {
  return make_layout({4 * elements, 4 * elements}, workspace, 2u << 20, kCandidateBase);
}

inline PlanParameter tensor(int index, std::int64_t offset = 0) {
  PlanParameter parameter;
  parameter.kind = PlanParameter::Kind::kTensor;
  parameter.index = index;
  parameter.offset = offset;
  return parameter;
}

inline PlanParameter workspace(std::int64_t offset = 0) {
  PlanParameter parameter;
  parameter.kind = PlanParameter::Kind::kWorkspace;
  parameter.offset = offset;
  return parameter;
}

template <class T>
PlanParameter constant(const T& value) {
  PlanParameter parameter;
  parameter.bytes.assign(reinterpret_cast<const char*>(&value), sizeof value);
  return parameter;
}

inline PlanNode kernel(const std::string& name, std::vector<PlanParameter> parameters) {
  PlanNode node;
  node.kind = PlanNode::Kind::kKernel;
  node.function = name;
  node.grid = {4, 1, 1};
  node.block = {256, 1, 1};
  node.parameters = std::move(parameters);
  return node;
}

// Each node waits for the one before.
inline LaunchPlan in_a_row(std::vector<PlanNode> nodes) {
  LaunchPlan plan;
  plan.nodes = std::move(nodes);
  for (std::size_t i = 1; i < plan.nodes.size(); ++i) {
    plan.edges.push_back({static_cast<int>(i - 1), static_cast<int>(i), 0, 0, 0});
  }
  return plan;
}

// Physical memory behind every slot of a layout.
struct MappedLayout {
  std::vector<PhysicalMemory> memory;
  AddressRange range;

  static MappedLayout make(const CudaDriver& cu, CUdevice device, const AddressLayout& layout) {
    MappedLayout mapped;
    mapped.range = *AddressRange::reserve(cu, layout.base, layout.reserve_bytes);
    for (const AddressLayout::Slot& slot : layout.slots) {
      mapped.memory.push_back(*PhysicalMemory::create(cu, device, slot.mapping_bytes));
      KP_ASSERT(mapped.range.map(device, slot.mapping, slot.mapping_bytes,
                                 mapped.memory.back().handle()));
    }
    return mapped;
  }
};

template <class T>
T* at(std::uint64_t address) {
  return reinterpret_cast<T*>(address);
}

// Memory as the judge has it: pieces mapped in a row, each of them shared.
class JudgeMemory {
 public:
  static constexpr std::uint64_t kBytes = 2u << 20;
  void open(const CudaDriver& cu, std::uint64_t bytes) {
    cu_ = &cu;
    window_ = *AddressRange::reserve(cu, 0, bytes);
    next_ = window_.base();
  }
  void close() {
    pieces_.clear();
    window_ = AddressRange();
  }
  // Adds a piece.
  Fd share() {
    pieces_.push_back(*PhysicalMemory::create(*cu_, 0, kBytes));
    KP_ASSERT(window_.map(0, next_, kBytes, pieces_.back().handle()));
    next_ += kBytes;
    return std::move(*pieces_.back().share());
  }
  std::uint64_t base() const { return window_.base(); }
  std::uint64_t last() const { return next_ - kBytes; }  // address of the piece added last

 private:
  const CudaDriver* cu_ = nullptr;
  AddressRange window_;
  std::vector<PhysicalMemory> pieces_;
  std::uint64_t next_ = 0;
};

}  // namespace kernelpro::testing

#endif
