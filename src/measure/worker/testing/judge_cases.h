// SPDX-License-Identifier: Apache-2.0
// A judge with a toy task over the fake driver, for the tests of JudgeCase.
#pragma once

#if KERNELPRO_HAVE_CUDA

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "core/task/inputs.h"
#include "core/task/key.h"
#include "core/task/mismatch.h"
#include "measure/worker/cuda/judge_case.h"
#include "measure/worker/testing/fake_gpu.h"

namespace kernelpro::testing {

// One set's slots where a worker maps them, at the candidate's addresses.
struct View {
  std::vector<PhysicalMemory> memory;
  AddressRange range;

  View(const CudaDriver& cu, const JudgeCase& judge, int set) {
    const AddressLayout& layout = judge.layout();
    range = *AddressRange::reserve(cu, layout.base, layout.reserve_bytes);
    for (std::size_t i = 0; i < layout.slots.size(); ++i) {
      const AddressLayout::Slot& slot = layout.slots[i];
      const auto fds = judge.share(set, {static_cast<int>(i)}, false);
      memory.push_back(*PhysicalMemory::import(cu, (*fds)[0].get(), slot.mapping_bytes));
      KP_ASSERT(range.map(0, slot.mapping, slot.mapping_bytes, memory.back().handle()));
    }
  }
};

inline constexpr int kToyElements = 1001;

// y = 2 x, a bool b = x > 0, and a parameter p that nothing depends on.
inline Task toy(DType floating) {
  Task task;
  task.name = "toy";
  task.tensors = {{"x", Role::kInput, floating, {"N"}, {Init::Kind::kNormal, 1, 2}, 0},
                  {"p", Role::kParameter, floating, {"7"}, {Init::Kind::kUniform, 0, 1}, 0},
                  {"y", Role::kOutput, floating, {"N"}, {}, 0},
                  {"b", Role::kOutput, DType::kBool, {"N"}, {}, 0}};
  task.cases = {Case{"toy", {{"N", kToyElements}}, true, {}}};
  task.workspace = "100";
  if (floating == DType::kFp16) task.precision = Precision::kFp16;
  if (floating == DType::kBf16) task.precision = Precision::kBf16;
  return task;
}
inline constexpr int kX = 0, kP = 1, kY = 2, kB = 3, kWorkspace = 4;

inline void store(DType dtype, void* data, std::size_t i, float value) {
  if (dtype == DType::kFp32) static_cast<float*>(data)[i] = value;
  if (dtype == DType::kFp16) static_cast<unsigned short*>(data)[i] = kp::to_half(value);
  if (dtype == DType::kBf16) static_cast<unsigned short*>(data)[i] = kp::to_bfloat16(value);
}

struct JudgeCases : FakeContext {
  JudgeCases() : FakeContext(Needs::kJudgeKernels) {}
  void SetUp() override {
    FakeContext::SetUp();
    if (IsSkipped()) return;
    auto loaded = TrustedKernels::load(cu(), context);
    ASSERT_TRUE(loaded) << loaded.error().text();
    kernels = std::move(*loaded);
  }
  void TearDown() override {
    view.reset();
    judge.reset();
    kernels = TrustedKernels();
    FakeContext::TearDown();
  }

  Result<JudgeCase> make(int sets, int sharing = 0, Policy policy = Policy::kContract) {
    return JudgeCase::open(cu(), context, kernels, judge_tensors(task, task.cases[0], policy, true),
                           static_cast<std::uint64_t>(workspace_bytes(task, task.cases[0])), sets,
                           sharing);
  }
  std::vector<kp::DrawSpec> specs() const {
    std::vector<kp::DrawSpec> all;
    for (const Tensor& t : task.tensors) all.push_back(draw_spec(t));
    return all;
  }
  // `run` computes y and b from x; y as doubles.
  void define_reference() {
    fake::define("reference", {{8, 8, 8}, [this](fake::Launch& launch) {
                                 const void* x = launch.memory<char>(0, 2 * kToyElements);
                                 double* y = launch.memory<double>(1, kToyElements);
                                 bool* b = launch.memory<bool>(2, kToyElements);
                                 if (x == nullptr || y == nullptr || b == nullptr) return;
                                 for (int i = 0; i < kToyElements; ++i) {
                                   const double v = element_as_double(task.tensors[0].dtype, x, i);
                                   y[i] = 2 * v + jitter++ * noise;
                                   b[i] = v > 0;
                                 }
                               }});
  }
  LaunchPlan reference() const {
    return in_a_row({kernel("reference", {tensor(kX), tensor(kY), tensor(kB)})});
  }
  // A judge with every set drawn, referenced and sealed.
  void open(DType floating = DType::kFp32, int sets = 2, int sharing = 0,
            Policy policy = Policy::kContract) {
    task = toy(floating);
    define_reference();
    auto made = make(sets, sharing, policy);
    ASSERT_TRUE(made) << made.error().text();
    judge = std::make_unique<JudgeCase>(std::move(*made));
    for (int set = 0; set < sets; ++set) {
      ASSERT_TRUE(judge->draw(set, key_of(77u + static_cast<unsigned>(set)), specs()));
      const auto agrees = judge->run_reference(set, fake::image({"reference"}), reference(), true);
      ASSERT_TRUE(agrees) << agrees.error().text();
      ASSERT_TRUE(*agrees);
      ASSERT_TRUE(judge->seal(set, true));
    }
  }
  // As a candidate sees a set.
  void look_at(int set) {
    view.reset();
    view = std::make_unique<View>(cu(), *judge, set);
  }
  template <class T = char>
  T* data(int slot) {
    return at<T>(judge->layout().slots[static_cast<std::size_t>(slot)].address);
  }
  // A correct call on the set that is looked at.
  void compute() {
    const DType dtype = task.tensors[kX].dtype;
    for (int i = 0; i < kToyElements; ++i) {
      const double v = element_as_double(dtype, data(kX), i);
      store(dtype, data(kY), static_cast<std::size_t>(i), static_cast<float>(2 * v));
      data<bool>(kB)[i] = v > 0;
    }
  }
  SetFindings found(int set, bool intrusions = true) {
    const auto findings = judge->verify({set}, intrusions);
    EXPECT_TRUE(findings) << findings.error().text();
    return findings ? (*findings)[0] : SetFindings();
  }
  static long count_log(const std::string& line) {
    return std::count(fake::log().begin(), fake::log().end(), line);
  }

  Task task;
  double noise = 0;
  int jitter = 0;
  TrustedKernels kernels;
  std::unique_ptr<JudgeCase> judge;
  std::unique_ptr<View> view;
};

}  // namespace kernelpro::testing

#endif
