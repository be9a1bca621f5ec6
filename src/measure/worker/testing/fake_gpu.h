// SPDX-License-Identifier: Apache-2.0
// For this room's tests: a fake GPU for each test, which must be left as it was found, and launch
// plans over a case of two fp32 tensors, x and y.
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
#include "base/text.h"
#include "core/launch_plan.h"
#include "core/protocol.h"
#include "embedded/judge_kernels.h"
#include "machine/driver/cuda_driver.h"
#include "measure/worker/cuda/memory.h"
#include "measure/worker/cuda/nvrtc.h"
#include "measure/worker/testing/fake_driver.h"

namespace kernelpro::testing {

class FakeGpu : public ::testing::Test {
 protected:
  void SetUp() override {
#ifdef __SANITIZE_THREAD__
    GTEST_SKIP() << "ThreadSanitizer needs the addresses of the launch plan";
#endif
    fake::reset(true);
    ASSERT_TRUE(cuda_driver()) << cuda_driver().error().text();
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
    const Result<std::string> path = trusted_cubin_path(embedded::judge_kernels, "sm_90a");
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
};

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

}  // namespace kernelpro::testing

#endif
