// SPDX-License-Identifier: Apache-2.0
// Real nvcc and real NVRTC; neither needs a GPU.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <thread>

#include "base/files.h"
#include "base/text.h"
#include "build/compiler.h"
#include "build/elf.h"
#include "build/plan_form.h"
#include "build/ptxas.h"

namespace kernelpro {
namespace {

class CudaCompilerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    task_.name = "t";
    task_.tensors = {{"x", Role::kInput, DType::kFp32, {"N"}, {}, 0},
                     {"y", Role::kOutput, DType::kFp32, {"N"}, {}, 0}};
    task_.cases = {{"c", {{"N", 1000}}, true, {}}};
    task_.workspace = "4*N";
    CompileSettings settings;
    settings.cache_dir = dir_.path();
    settings.cuda_arch = "sm_90a";
    auto compiler = make_cuda_compiler(settings);
    if (!compiler) GTEST_SKIP() << compiler.error().text();
    compiler_ = std::move(*compiler);
  }

  CompileResult compile(const std::string& source, const KnobValues& knobs = {}) {
    return compiler_->compile(task_, task_.cases[0], {Language::kCuda, source, knobs, {}});
  }
  static Binary binary(const CompileResult& result) {
    EXPECT_TRUE(result) << result.error().text();
    if (!result) return {};
    if (const auto* error = std::get_if<CompileError>(&*result)) {
      ADD_FAILURE() << error->log;
      return {};
    }
    return std::get<Binary>(*result);
  }
  static std::string log(const CompileResult& result) {
    if (!result) return result.error().text();
    const auto* error = std::get_if<CompileError>(&*result);
    return error != nullptr ? error->log : "it compiled";
  }

  TempDir dir_;
  Task task_;
  std::unique_ptr<Compiler> compiler_;
};

constexpr const char* kPlanForm = R"(
// @knob THREADS 128 256
#include "task.h"
template <int A, int B>
__global__ void scale(const float* x, float* y, float s, long long n) {
  const long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] * s * A + B;
}
__global__ void touch(void* w, unsigned char flag, bool yes) { *(int*)w = flag + yes; }
KP_MEMSET(arg::y, 7, N * 4)
KP_LAUNCH((scale<1, 2>), kp::dim((N + THREADS - 1) / THREADS), kp::dim(THREADS), 0, arg::x,
          arg::y + 16, 2.0, N)
KP_LAUNCH_CLUSTER(touch, kp::dim(4, 2), kp::dim(32), 65536, kp::dim(2), arg::workspace + 8, 3, true)
)";

TEST_F(CudaCompilerTest, PlanFormGivesThePlan) {
  const Binary b = binary(compile(kPlanForm, {{"THREADS", "256"}}));
  ASSERT_EQ(b.form, Binary::Form::kPlanForm);
  ASSERT_EQ(b.plan.nodes.size(), 3u);
  const PlanNode& set = b.plan.nodes[0];
  EXPECT_EQ(set.kind, PlanNode::Kind::kMemset);
  EXPECT_EQ(set.width, 4000u);
  EXPECT_EQ(set.value, 7u);
  EXPECT_EQ(set.destination.index, 1);
  const PlanNode& scale = b.plan.nodes[1];
  EXPECT_EQ(scale.function, "_Z5scaleILi1ELi2EEvPKfPffx");
  EXPECT_EQ(scale.grid[0], 4u);
  EXPECT_EQ(scale.block[0], 256u);
  ASSERT_EQ(scale.parameters.size(), 4u);
  EXPECT_EQ(scale.parameters[0].kind, PlanParameter::Kind::kTensor);
  EXPECT_EQ(scale.parameters[1].offset, 64);
  EXPECT_EQ(scale.parameters[2].bytes, std::string("\0\0\0\x40", 4));  // 2.0f
  EXPECT_EQ(scale.parameters[3].bytes, std::string("\xe8\3\0\0\0\0\0\0", 8));
  const PlanNode& touch = b.plan.nodes[2];
  EXPECT_EQ(touch.cluster[0], 2u);
  EXPECT_EQ(touch.dynamic_shared, 65536u);
  EXPECT_EQ(touch.parameters[0].kind, PlanParameter::Kind::kWorkspace);
  EXPECT_EQ(touch.parameters[0].offset, 8);
  EXPECT_EQ(touch.parameters[1].bytes, "\3");
  EXPECT_EQ(b.plan.edges.size(), 2u);
  ASSERT_EQ(b.resources.count("_Z5scaleILi1ELi2EEvPKfPffx"), 1u);
  EXPECT_GT(b.resources.at("_Z5scaleILi1ELi2EEvPKfPffx").registers, 0);
}

// NVRTC has neither header; nvcc compiles it to the same result.
// ptxas 13.0 takes a variable of this name for shared memory itself.
constexpr const char* kNamedLikeSharedMemory = R"(#include "task.h"
constexpr int SMEM = 65536;
__global__ void first(const float* x, float* y) {
  __shared__ float sums[8];
  if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = x[threadIdx.x];
  __syncthreads();
  y[threadIdx.x] = sums[threadIdx.x % 8];
}
__global__ void second(float* y) {
  extern __shared__ float whole[];
  __shared__ float few[4];
  few[threadIdx.x % 4] = y[threadIdx.x];
  __syncthreads();
  whole[threadIdx.x] = few[threadIdx.x % 3];
  __syncthreads();
  y[threadIdx.x] = whole[threadIdx.x ^ 1];
}
KP_LAUNCH(first, kp::dim(1), kp::dim(256), 0, arg::x, arg::y)
KP_LAUNCH(second, kp::dim(1), kp::dim(256), SMEM, arg::y)
)";

// How many places of the kernels' code the loader fills in.
int relocations_of_code(const std::string& cubin) {
  const std::string bytes = *read_file(cubin);
  Elf elf(bytes);
  EXPECT_TRUE(elf.read_sections());
  int all = 0;
  for (std::size_t i = 0; i < elf.section_count(); ++i) {
    if (!elf.name(i).starts_with(".rela.text.")) continue;
    all += static_cast<int>(elf.content(i).size() / sizeof(Elf64_Rela));
  }
  return all;
}

TEST_F(CudaCompilerTest, AConstantMayBeNamedLikeSharedMemory) {
  const Binary b = binary(compile(kNamedLikeSharedMemory));
  ASSERT_EQ(b.plan.nodes.size(), 2u);
  EXPECT_EQ(b.plan.nodes[1].dynamic_shared, 65536u);
  EXPECT_EQ(relocations_of_code(b.cubin), 0);
  // A directive about it keeps its meaning.
  const std::string macro = replace_all(kNamedLikeSharedMemory, "constexpr int SMEM = 65536;",
                                        "#ifndef SMEM\n#define SMEM 65536\n#endif");
  EXPECT_EQ(binary(compile(macro)).plan.nodes[1].dynamic_shared, 65536u);
}

TEST_F(CudaCompilerTest, AConstantMayBeNamedLikeALabel) {
  const std::string labelled = R"(#include "task.h"
constexpr int W = 7, D = 4;
__global__ void wait(float* y) {
  asm volatile("{\n.reg .pred P;\nW:\nsetp.eq.u32 P, %0, 0;\n@P bra D;\nbra D;\nD:\n}\n" ::"r"(W));
  y[threadIdx.x] = W * D;
}
KP_LAUNCH(wait, kp::dim(1), kp::dim(256), 0, arg::y)
)";
  EXPECT_EQ(binary(compile(labelled)).plan.nodes.size(), 1u);
  // In a raw literal, behind a quote as a character, and with braces.
  const std::string raw = R"cuda(#include "task.h"
constexpr char kQuote = '"';
constexpr int W{7};
__global__ void wait(float* y) {
  asm volatile(R"x({
.reg .pred P;
W:
setp.eq.u32 P, %0, 0;
@P bra W;
})x" ::"r"(W));
  y[threadIdx.x] = W + kQuote;
}
KP_LAUNCH(wait, kp::dim(1), kp::dim(256), 0, arg::y)
)cuda";
  EXPECT_EQ(binary(compile(raw)).plan.nodes.size(), 1u);
}

TEST_F(CudaCompilerTest, PlanFormMayIncludeTheHostsHeaders) {
  const std::string headers = "#include <array>\n#include <cstdint>\n" + std::string(kPlanForm);
  const Binary b = binary(compile(headers, {{"THREADS", "256"}}));
  ASSERT_EQ(b.form, Binary::Form::kPlanForm);
  ASSERT_EQ(b.plan.nodes.size(), 3u);
  EXPECT_EQ(b.plan.nodes[1].function, "_Z5scaleILi1ELi2EEvPKfPffx");
  EXPECT_GT(b.resources.at("_Z5scaleILi1ELi2EEvPKfPffx").registers, 0);
  EXPECT_NE(log(compile("#include <no_such>\n" + std::string(kPlanForm))).find("no_such"),
            std::string::npos);
  // Any other failure is told, and not that NVRTC lacks them.
  const std::string wrong = log(compile(
      "#include <cstdint>\nstatic_assert(sizeof(int) == 3, \"odd\");\n" + std::string(kPlanForm)));
  EXPECT_NE(wrong.find("odd"), std::string::npos) << wrong;
  EXPECT_EQ(wrong.find("cstdint"), std::string::npos) << wrong;
  const std::string both =
      log(compile("#include <cstdint>\n#include <no_such>\n" + std::string(kPlanForm)));
  EXPECT_NE(both.find("no_such"), std::string::npos) << both;
}

constexpr const char* kMapped = R"(
#include "task.h"
__global__ void tiles(float s, const __grid_constant__ kp::TensorMap a, float* y,
                      const __grid_constant__ kp::TensorMap b) {
  y[threadIdx.x] = s + (&a == &b);
}
KP_LAUNCH(tiles, kp::dim(4), kp::dim(32), 0, 2.0f,
          kp::tensor_map(arg::x + 4, kp::sizes(100, 10), kp::box(16, 2), kp::Swizzle::k64), arg::y,
          kp::tensor_map(arg::y, kp::sizes(20, 5, 10), kp::strides(80, 400), kp::box(4, 1, 256)))
)";

TEST_F(CudaCompilerTest, TensorMapsAreDeclared) {
  const Binary b = binary(compile(kMapped));
  ASSERT_EQ(b.plan.nodes.size(), 1u);
  const std::vector<PlanParameter>& all = b.plan.nodes[0].parameters;
  ASSERT_EQ(all.size(), 4u);
  EXPECT_FALSE(all[0].map || all[2].map);
  ASSERT_TRUE(all[1].map && all[3].map);
  EXPECT_EQ(all[1].kind, PlanParameter::Kind::kTensor);
  EXPECT_EQ(all[1].index, 0);
  EXPECT_EQ(all[1].offset, 16);
  const PlanTensorMap& a = *all[1].map;
  EXPECT_EQ(a.type, 7) << "float";
  EXPECT_EQ(a.rank, 2);
  EXPECT_EQ(a.swizzle, 2);
  EXPECT_EQ(a.sizes[0], 100);
  EXPECT_EQ(a.sizes[1], 10);
  EXPECT_EQ(a.strides[0], 400) << "rows without gaps";
  EXPECT_EQ(a.box[0], 16);
  EXPECT_EQ(a.box[1], 2);
  const PlanTensorMap& c = *all[3].map;
  EXPECT_EQ(all[3].index, 1);
  EXPECT_EQ(c.rank, 3);
  EXPECT_EQ(c.strides[1], 400);
  EXPECT_EQ(c.box[2], 256);
  const auto again = plan_from_json(plan_to_json(b.plan));
  ASSERT_TRUE(again);
  EXPECT_EQ(plan_to_json(*again), plan_to_json(b.plan));
}

TEST_F(CudaCompilerTest, ATensorMapThatTheDriverWouldRefuseIsExplained) {
  const auto refused = [&](const std::string& from, const std::string& to) {
    return log(compile(replace_all(kMapped, from, to)));
  };
  EXPECT_TRUE(contains(refused("box(16, 2)", "box(16, 257)"), "box that is not 1 to 256"));
  EXPECT_TRUE(contains(refused("box(16, 2)", "box(3, 2)"), "multiple of 16 bytes"));
  EXPECT_TRUE(contains(refused("box(16, 2)", "box(32, 2)"), "bytes of its swizzle"));
  EXPECT_TRUE(
      contains(refused("sizes(100, 10)", "sizes(99, 10)"), "stride that is not a multiple"));
  EXPECT_TRUE(contains(refused("box(16, 2)", "box(16)"), "do not have the dimensions"));
  EXPECT_TRUE(contains(refused("arg::x + 4", "arg::x + 1"), "address is not a multiple of 16"));
  EXPECT_TRUE(contains(refused("kp::TensorMap b", "float* b"), "kp::TensorMap"));
}

// Cases differ only in the text of task.h, which compilers may keep precompiled.
TEST_F(CudaCompilerTest, EachCaseHasItsOwnHeader) {
  task_.cases.push_back({"d", {{"N", 5000}}, true, {}});
  for (const int round : {0, 1, 2}) {
    for (const Case& c : task_.cases) {
      const Binary b =
          binary(compiler_->compile(task_, c,
                                    {Language::kCuda,
                                     kPlanForm + std::string("// ") + std::to_string(round),
                                     {{"THREADS", "256"}},
                                     {}}));
      ASSERT_EQ(b.plan.nodes.size(), 3u);
      EXPECT_EQ(b.plan.nodes[0].width, static_cast<std::uint64_t>(4 * c.dims.at("N")));
    }
  }
}

TEST_F(CudaCompilerTest, SeveralThreadsCompileAtOnce) {
  std::vector<std::thread> threads;
  std::atomic<int> good{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 3; ++i) {
        const std::string source = kPlanForm + std::string("// ") + std::to_string(10 * t + i);
        const CompileResult result = compile(source, {{"THREADS", "128"}});
        if (result && std::holds_alternative<Binary>(*result)) ++good;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(good, 12);
}

TEST_F(CudaCompilerTest, TheCacheGivesTheSamePlanBack) {
  const Binary first = binary(compile(kPlanForm, {{"THREADS", "128"}}));
  const Binary second = binary(compile(kPlanForm, {{"THREADS", "128"}}));
  EXPECT_GT(first.compile_ms, 0);
  EXPECT_EQ(second.compile_ms, 0);
  EXPECT_EQ(plan_to_json(first.plan), plan_to_json(second.plan));
  EXPECT_EQ(second.form, Binary::Form::kPlanForm);
}

TEST_F(CudaCompilerTest, PlanFormMistakesAreNamed) {
  const std::string wrong_count =
      log(compile("#include \"task.h\"\n__global__ void k(float* y) {}\nKP_LAUNCH(k, kp::dim(1), "
                  "kp::dim(1), 0)\n"));
  EXPECT_NE(wrong_count.find("different number of arguments"), std::string::npos) << wrong_count;
  const std::string empty_grid =
      log(compile("#include \"task.h\"\n__global__ void k(float* y) {}\nKP_LAUNCH(k, kp::dim(0), "
                  "kp::dim(1), 0, arg::y)\n"));
  EXPECT_NE(empty_grid.find("empty grid"), std::string::npos) << empty_grid;
  const std::string syntax =
      log(compile("#include \"task.h\"\n__global__ void k(float* y) { y[0] = nothing; "
                  "}\nKP_LAUNCH(k, kp::dim(1), kp::dim(1), 0, arg::y)\n"));
  EXPECT_NE(syntax.find("kernel.cu(2)"), std::string::npos) << syntax;
  EXPECT_NE(syntax.find("nothing"), std::string::npos) << syntax;
  task_.workspace = "";
  EXPECT_NE(log(compile(kPlanForm, {{"THREADS", "128"}})).find("workspace"), std::string::npos);
}

TEST_F(CudaCompilerTest, HostFormGivesCubinAndSharedObject) {
  const Binary b = binary(compile(R"(
#include "task.h"
__global__ void copy(const float* x, float* y) { y[threadIdx.x] = x[threadIdx.x]; }
extern "C" void launch(const Args& args, cudaStream_t stream) {
  copy<<<1, 32, 0, stream>>>(args.x, args.y);
}
)"));
  EXPECT_EQ(b.form, Binary::Form::kHostForm);
  EXPECT_TRUE(exists(b.cubin));
  EXPECT_TRUE(exists(b.shared_object));
  EXPECT_EQ(b.resources.size(), 1u);
  EXPECT_EQ(list_dir(dirname(b.cubin)).size(), 5u) << "intermediate files were left behind";
}

TEST_F(CudaCompilerTest, HostFormErrorsNameTheLine) {
  const std::string text = log(compile(
      "#include \"task.h\"\nextern \"C\" void launch(const Args&, cudaStream_t) { oops(); }\n"));
  EXPECT_NE(text.find("kernel.cu(2)"), std::string::npos) << text;
  EXPECT_NE(text.find("oops"), std::string::npos) << text;
}

TEST(PlanForm, IsToldFromComments) {
  EXPECT_TRUE(is_plan_form("KP_LAUNCH(k, 1)"));
  EXPECT_FALSE(is_plan_form("// KP_LAUNCH(k, 1)\nvoid launch();"));
  EXPECT_FALSE(is_plan_form("/* KP_LAUNCH(k, 1) */ void launch();"));
  EXPECT_TRUE(is_plan_form("/* x */ KP_LAUNCH_CLUSTER(k, 1)"));
}

TEST(PlanForm, AnyBytesAreSafe) {
  std::string bytes =
      "\x7f"
      "ELF";
  EXPECT_FALSE(plan_from_cubin(bytes, 1, false));
  std::uint32_t state = 1;
  for (int round = 0; round < 200; ++round) {
    std::string noise =
        "\x7f"
        "ELF\2\1\1";
    for (int i = 0; i < 500; ++i)
      noise += static_cast<char>((state = state * 1664525u + 1013904223u) >> 24);
    EXPECT_FALSE(plan_from_cubin(noise, 1, true));
  }
}

TEST(Ptxas, ReadsResourcesPerKernel) {
  const auto kernels = parse_ptxas(
      "ptxas info    : 0 bytes gmem\n"
      "ptxas info    : Compiling entry function '_Z1aPf' for 'sm_90a'\n"
      "ptxas info    : Function properties for helper\n"
      "    8 bytes stack frame, 8 bytes spill stores, 8 bytes spill loads\n"
      "ptxas info    : Function properties for _Z1aPf\n"
      "    96 bytes stack frame, 100 bytes spill stores, 120 bytes spill loads\n"
      "ptxas info    : Used 64 registers, used 1 barriers, 96 bytes cumulative stack size, 4096 "
      "bytes smem\n");
  ASSERT_EQ(kernels.size(), 1u);
  const KernelResources& a = kernels.at("_Z1aPf");
  EXPECT_EQ(a.registers, 64);
  EXPECT_EQ(a.stack_bytes, 96);
  EXPECT_EQ(a.spill_store_bytes, 100);
  EXPECT_EQ(a.spill_load_bytes, 120);
  EXPECT_EQ(a.shared_bytes, 4096);
}

}  // namespace
}  // namespace kernelpro
