// SPDX-License-Identifier: Apache-2.0
#include "core/proposal/fact.h"

#include <gtest/gtest.h>

#include "base/text.h"
#include "core/plan/api_names.h"
#include "core/task/operator_family.h"

namespace kernelpro {
namespace {

Fact whole() {
  Fact f;
  f.when = "2026-01-02T03:04:05Z";
  f.machine = "NVIDIA H200";
  f.arch = "sm_90a";
  f.target = TargetKind::kCuda;
  f.language = Language::kCuda;
  f.family = {"products", "softmax"};
  f.task = "case";
  f.task_hash = "11";
  f.candidate = "22";
  f.proposer = "model";
  f.idea = "Two buffers \"at once\"";
  f.knobs = "TILE 16 -> 32";
  f.answers = FindingRef::parse("scalar-loads: vectorize");
  f.parent = "33";
  f.bound = Bound::kMemory;
  f.fraction = 0.41;
  f.outcome = OutcomeKind::kCorrect;
  f.speedup = 1.5;
  f.low = 1.4;
  f.high = 1.6;
  f.error = "k.cu(3): error: no";
  f.cure = "- a\n+ b";
  f.api = {"wgmma.mma_async"};
  return f;
}

TEST(Fact, ComesBackFromItsText) {
  const std::string text = fact_to_json(whole());
  EXPECT_EQ(text.find('\n'), std::string::npos);
  const auto again = fact_from_json(text);
  ASSERT_TRUE(again);
  EXPECT_EQ(fact_to_json(*again), text);
  EXPECT_EQ(again->language, Language::kCuda);
  EXPECT_EQ(again->cure, "- a\n+ b");
  const auto several = facts_from_json(facts_to_json({whole(), whole()}));
  ASSERT_TRUE(several);
  EXPECT_EQ(several->size(), 2u);
  EXPECT_TRUE(facts_from_json("")->empty());
}

TEST(Fact, WhatIsNoFactIsNone) {
  for (const char* bad : {"", "{", "[]", "7", "{\"target\": 3}", "{\"target\": \"cpu\"}",
                          "{\"target\":\"cpu\",\"language\":\"latin\",\"outcome\":\"correct\"}",
                          "{\"target\":\"cpu\",\"language\":\"cpp\",\"outcome\":\"perhaps\"}"}) {
    EXPECT_FALSE(fact_from_json(bad)) << bad;
  }
  EXPECT_FALSE(facts_from_json("[{}]"));
  EXPECT_FALSE(facts_from_json("{}"));
  // Members of the wrong type count as missing.
  const auto odd = fact_from_json(
      "{\"target\":\"cpu\",\"language\":\"cpp\",\"outcome\":\"correct\",\"speedup\":\"2\","
      "\"family\":[1,\"scan\"],\"api\":{}}");
  ASSERT_TRUE(odd);
  EXPECT_EQ(odd->speedup, 0);
  EXPECT_EQ(odd->family, std::vector<std::string>{"scan"});
}

TEST(FailureLine, IsTheOneThatSaysWhatIsWrong) {
  EXPECT_EQ(failure_line(CompileError{"In file k.cu:\n  k.cu(7): error: x is undefined\nerror: 2"}),
            "k.cu(7): error: x is undefined");
  EXPECT_EQ(failure_line(CompileError{"\n ptxas fatal\nmore"}), "ptxas fatal");
  EXPECT_EQ(failure_line(Outcome(Correct())), "");
  EXPECT_TRUE(contains(failure_line(WrongResult{"small", "y", "element 3 is off", 0.5, 1e-5}),
                       "element 3 is off"));
  EXPECT_EQ(failure_line(std::string_view("error \xff\x01")), "error ??");
  EXPECT_LE(failure_line(CompileError{std::string(5000, 'x')}).size(), 300u);
}

using Names = std::set<std::string>;

TEST(ApiNames, AreFeaturesAndNothingElse) {
  const char* source = R"cu(
// idea: __not_me() and wgmma.not_me.sync
#include "task.h"
#  include <cuda/barrier>  // why
#include "cute/tensor.hpp"
/* __nor_me() "cp.nor.me" */
__global__ void __launch_bounds__(128) k(const float* __restrict__ x) {
  __shared__ float s[32];
  const float v = __shfl_xor_sync(0xffffffff, x[0], 1) + 1.0e5f;
  auto t = cute::make_tensor(x); cuda :: barrier<1> b; foo::bar();
  __syncthreads(); const char* note = "an mma of ours. cp.";
  asm volatile("wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {%0};\n\t"
               "setmaxnreg.inc.sync.aligned.u32 240;\n"
               "cp.async.bulk.tensor.2d.shared::cluster.global.tile [%0], [%1];" : "+f"(v));
  asm("mma.sync.aligned.m16n8k16.row.col.f32 {}; add.f32 %0; ld.global.nc.f32 %1;");
}
)cu";
  EXPECT_EQ(api_names(source), (Names{"<cuda/barrier>", "\"cute/tensor.hpp\"", "__shfl_xor_sync",
                                      "cute::make_tensor", "cuda::barrier", "wgmma.mma_async",
                                      "setmaxnreg.inc", "cp.async.bulk.tensor", "mma.sync"}));
  EXPECT_EQ(
      api_names("#include <immintrin.h>\n#pragma omp parallel for\n"
                "__m256 a = _mm256_fmadd_ps(a, b, c); __builtin_prefetch(p);"),
      (Names{"<immintrin.h>", "#pragma omp parallel", "_mm256_fmadd_ps", "__builtin_prefetch"}));
}

TEST(ApiNames, AnyBytesMayCome) {
  for (const char* odd : {"", "\"", "'", "/*", "\\", "#include", "\"\\", "\"wgmma.",
                          "cute::", "R\"(wgmma.a)\"", "\xff\xfe\"cp.\xff\""}) {
    EXPECT_LE(api_names(odd).size(), 1u) << odd;
  }
}

Task described(const std::string& summary) {
  Task task;
  task.name = "case";
  task.summary = summary;
  return task;
}
using Kinds = std::vector<std::string>;

TEST(OperatorFamily, IsToldByWhatIsDescribed) {
  EXPECT_EQ(operator_family(described("y = 2 x")), Kinds{"elementwise"});
  EXPECT_EQ(operator_family(described("Softmax over rows")), Kinds{"softmax"});
  EXPECT_EQ(operator_family(described("C = A @ B, a GEMM with LayerNorm")),
            (Kinds{"normalization", "products"}));
  Task grouped = described("gemm of groups");
  grouped.tensors.push_back({"ends", Role::kInput, DType::kInt32, {}, {}, 0});
  EXPECT_EQ(operator_family(grouped), (Kinds{"groups", "products"}));
  // A kernel's own words do not describe the task.
  Task kernel = described("y = 2 x");
  kernel.kernel_cu = "// a convolution, and softmax";
  EXPECT_EQ(operator_family(kernel), Kinds{"elementwise"});
}

TEST(OperatorFamily, LikenessIsWhatIsShared) {
  EXPECT_DOUBLE_EQ(family_likeness({"softmax"}, {"softmax"}), 1);
  EXPECT_DOUBLE_EQ(family_likeness({"attention", "softmax"}, {"softmax"}), 0.5);
  EXPECT_DOUBLE_EQ(family_likeness({"scan"}, {"softmax"}), 0);
  EXPECT_DOUBLE_EQ(family_likeness({}, {}), 0);
}

}  // namespace
}  // namespace kernelpro
