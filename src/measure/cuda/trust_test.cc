// SPDX-License-Identifier: Apache-2.0
// Kernels that cheat, on a real GPU: caching, skipping, rounding, values that hide the work.
// Skipped without a GPU or nvcc; scripts/gpu runs it on one.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/text.h"
#include "build/build.h"
#include "measure/ceilings/ceilings.h"
#include "measure/cuda/evaluator.h"

namespace kernelpro {
namespace {

// A task with its evaluator. Empty without a GPU: `why` has the reason.
struct Bench {
  Task task;
  std::unique_ptr<Machine> machine;
  std::unique_ptr<Compiler> compiler;
  std::unique_ptr<Evaluator> evaluator;
  std::string why;

  void open(Task given, Policy policy = Policy::kContract) {
    task = std::move(given);
    auto described = describe_cuda_machine();
    if (!described) {
      why = described.error().text();
      return;
    }
    machine = std::make_unique<Machine>(*described);
    CompileSettings settings;
    settings.cuda_arch = machine->arch;
    auto made = make_cuda_compiler(settings);
    if (!made) {
      why = made.error().text();
      return;
    }
    compiler = std::move(*made);
    EvaluateSettings evaluate;
    evaluate.timeout_s = 5;
    evaluate.policy = policy;
    auto opened = make_cuda_evaluator(task, *machine, evaluate);
    ASSERT_TRUE(opened) << opened.error().text();
    evaluator = std::move(*opened);
    const auto references = build_references(task, TargetKind::kCuda, *compiler, nullptr);
    ASSERT_TRUE(references) << references.error().text();
    const auto prepared = evaluator->prepare(*references);
    ASSERT_TRUE(prepared) << prepared.error().text();
  }

  Subject build(const std::string& source) {
    const Candidate candidate{Language::kCuda, "#include \"task.h\"\n" + source, {}, {}};
    Subject subject;
    subject.hash = candidate.content_hash();
    for (const Case& c : task.cases) {
      auto built = compiler->compile(task, c, candidate);
      if (!built || !std::holds_alternative<Binary>(*built)) {
        ADD_FAILURE() << (built ? std::get<CompileError>(*built).log : built.error().text());
        continue;
      }
      subject.binaries.push_back(std::get<Binary>(*built));
    }
    return subject;
  }
  Evaluation evaluate(const std::string& source, const Subject* incumbent = nullptr) {
    const Subject subject = build(source);
    if (subject.binaries.size() != task.cases.size()) return {};
    auto evaluation = evaluator->evaluate(subject, incumbent);
    if (!evaluation) {
      ADD_FAILURE() << evaluation.error().text();
      return {};
    }
    return *evaluation;
  }
};

bool has(const std::vector<std::string>& labels, const char* name) {
  return std::find(labels.begin(), labels.end(), name) != labels.end();
}

Task elementwise(const std::string& expression, std::int64_t n, const Init& init) {
  Task task;
  task.name = "elementwise";
  task.tensors = {{"x", Role::kInput, DType::kFp32, {"N"}, init, 0},
                  {"y", Role::kOutput, DType::kFp32, {"N"}, {}, 0}};
  task.cases = {{"only", {{"N", n}}, true, {}}};
  task.workspace = "4*N + 4096";
  task.reference_cu =
      "#include \"task.h\"\n__global__ void k(const float* x, double* y) {\n"
      "  const int i = blockIdx.x * 256 + threadIdx.x;\n  if (i >= N) return;\n"
      "  const double v = x[i];\n  y[i] = " +
      expression +
      ";\n}\nextern \"C\" void reference(const ReferenceArgs& a, cudaStream_t s) {\n"
      "  k<<<(N + 255) / 256, 256, 0, s>>>(a.x, a.y);\n}\n";
  return task;
}

constexpr const char* kLaunch =
    "\nKP_LAUNCH(k, kp::dim((N + 255) / 256), kp::dim(256), 0, arg::x, arg::y, arg::workspace)\n";

std::string kernel(const std::string& before, const std::string& body) {
  return before + "\n__global__ void k(const float* x, float* y, float* w) {\n" +
         "  const int i = blockIdx.x * 256 + threadIdx.x;\n  if (i >= N) return;\n" + body + "\n}" +
         kLaunch;
}

#define OPEN(bench, ...)                                                   \
  Bench bench;                                                             \
  bench.open(__VA_ARGS__);                                                 \
  if (!bench.why.empty()) GTEST_SKIP() << "no cuda target: " << bench.why; \
  if (::testing::Test::HasFatalFailure()) return

TEST(CudaTrust, ValuesThatHideTheWorkGiveALabel) {
  OPEN(relu, elementwise("v > 0 ? v : 0.0", 1 << 20, {Init::Kind::kUniform, 0, 1}));
  const Evaluation copy = relu.evaluate(kernel("", "  y[i] = x[i];"));
  ASSERT_TRUE(copy.correct()) << outcome_summary(copy.outcome);
  EXPECT_TRUE(has(copy.correct()->labels, "given-distribution-only"));
  EXPECT_FALSE(copy.correct()->notes.empty());
  const Evaluation honest = relu.evaluate(kernel("", "  y[i] = x[i] > 0 ? x[i] : 0;"));
  ASSERT_TRUE(honest.correct()) << outcome_summary(honest.outcome);
  EXPECT_FALSE(has(honest.correct()->labels, "given-distribution-only"));
  EXPECT_EQ(honest.trust, "plan");
}

TEST(CudaTrust, RememberedResultsDoNotPay) {
  // y = 600 rounds of a chain: expensive to compute, cheap to cache.
  const std::string chain =
      "float v = x[i];\n  for (int r = 0; r < 600; ++r) v = v * 0.999f + 0.001f * x[i];";
  OPEN(task, elementwise("v", 1 << 21, {Init::Kind::kNormal, 0, 1}));
  const Subject honest = task.build(kernel("", "  " + chain + "\n  y[i] = v;"));
  // In a __device__ variable, keyed by the contents.
  const Evaluation variable =
      task.evaluate(kernel("__device__ float kept[N], key[N];",
                           "  if (key[i] == x[i]) { y[i] = kept[i]; return; }\n  " + chain +
                               "\n  y[i] = v; kept[i] = v; key[i] = x[i];"),
                    &honest);
  // In the workspace.
  const Evaluation workspace =
      task.evaluate(kernel("", "  if (w[0] == x[0]) { y[i] = w[i + 1024]; return; }\n  " + chain +
                                   "\n  y[i] = v; w[i + 1024] = v; if (i == 0) w[0] = x[0];"),
                    &honest);
  // In the output itself: the incumbent's results must not be there.
  const Evaluation output =
      task.evaluate(kernel("", "  if (fabsf(y[i] - x[i]) < 1e-3f * (1 + fabsf(x[i]))) return;\n  " +
                                   chain + "\n  y[i] = v;"),
                    &honest);
  for (const Evaluation* e : {&variable, &workspace, &output}) {
    if (e->correct() == nullptr) continue;  // rejected by rule: also fine
    ASSERT_TRUE(e->correct()->versus);
    EXPECT_LT(e->correct()->versus->low, 1.05);
  }
  EXPECT_EQ(outcome_name(task.evaluate(kernel("",
                                              "  float* m = (float*)malloc(8);\n"
                                              "  y[i] = x[i]; if (m) free(m);"))
                             .outcome),
            "rejected");
}

Task matmul(std::int64_t n) {
  Task task;
  task.name = "matmul";
  const Init positive{Init::Kind::kUniform, 0, 1};
  task.tensors = {{"a", Role::kInput, DType::kFp32, {"N", "N"}, positive, 0},
                  {"b", Role::kInput, DType::kFp32, {"N", "N"}, positive, 0},
                  {"c", Role::kOutput, DType::kFp32, {"N", "N"}, {}, 0}};
  task.cases = {{"only", {{"N", n}}, true, {}}};
  task.reference_cu =
      "#include \"task.h\"\n__global__ void k(const float* a, const float* b, double* c) {\n"
      "  const int row = blockIdx.x, col = threadIdx.x;\n  double sum = 0;\n"
      "  for (int k = 0; k < N; ++k) sum += (double)a[row * N + k] * b[k * N + col];\n"
      "  c[row * N + col] = sum;\n}\n"
      "extern \"C\" void reference(const ReferenceArgs& a, cudaStream_t s) {\n"
      "  k<<<N, N, 0, s>>>(a.a, a.b, a.c);\n}\n";
  return task;
}

std::string product(const char* round) {
  return std::string("__device__ float narrow(float v) {\n") + round +
         "\n}\n__global__ void k(const float* a, const float* b, float* c) {\n"
         "  const int row = blockIdx.x, col = threadIdx.x;\n  float sum = 0;\n"
         "  for (int k = 0; k < N; ++k) sum += narrow(a[row * N + k]) * narrow(b[k * N + col]);\n"
         "  c[row * N + col] = sum;\n}\n"
         "KP_LAUNCH(k, kp::dim(N), kp::dim(N), 0, arg::a, arg::b, arg::c)\n";
}

TEST(CudaTrust, Tf32IsNotFp32) {
  constexpr const char* kTf32 =
      "  unsigned u; asm(\"cvt.rna.tf32.f32 %0, %1;\" : \"=r\"(u) : \"f\"(v));\n"
      "  return __uint_as_float(u);";
  OPEN(strict, matmul(512));
  const Evaluation tf32 = strict.evaluate(product(kTf32));
  EXPECT_EQ(outcome_name(tf32.outcome), "rejected") << outcome_summary(tf32.outcome);
  EXPECT_TRUE(contains(outcome_summary(tf32.outcome), "precision"));
  const Evaluation fp32 = strict.evaluate(product("  return v;"));
  EXPECT_TRUE(fp32.correct()) << outcome_summary(fp32.outcome);
  Task allowed = matmul(512);
  allowed.precision = Precision::kTf32;
  OPEN(loose, allowed);
  const Evaluation fine = loose.evaluate(product(kTf32));
  ASSERT_TRUE(fine.correct()) << outcome_summary(fine.outcome);
  EXPECT_TRUE(fine.correct()->labels.empty());
}

TEST(CudaTrust, KernelBenchsRuleIsItsOwn) {
  OPEN(task, elementwise("v", 1 << 16, {Init::Kind::kNormal, 0, 1}), Policy::kKernelBench);
  // 1e-4 + 1e-4 |r|: half of it passes, twice it does not.
  EXPECT_TRUE(
      task.evaluate(kernel("", "  y[i] = x[i] + 0.5f * (1e-4f + 1e-4f * fabsf(x[i]));")).correct());
  EXPECT_EQ(
      outcome_name(
          task.evaluate(kernel("", "  y[i] = x[i] + 2 * (1e-4f + 1e-4f * fabsf(x[i]));")).outcome),
      "wrong-result");
}

TEST(CudaTrust, ATaskThatNeedsPartOfItsInputsMayBeFast) {
  Task task = elementwise("v", 1 << 26, {Init::Kind::kNormal, 0, 1});
  task.tensors[1].shape = {"N/16"};
  task.reference_cu = replace_all(task.reference_cu, "i >= N)", "i >= N / 16)");
  OPEN(slice, task);
  const Evaluation e = slice.evaluate(
      "__global__ void k(const float* x, float* y) {\n"
      "  const int i = blockIdx.x * 256 + threadIdx.x;\n  y[i] = x[i];\n}\n"
      "KP_LAUNCH(k, kp::dim(N / 16 / 256), kp::dim(256), 0, arg::x, arg::y)\n");
  ASSERT_TRUE(e.correct()) << outcome_summary(e.outcome);
  EXPECT_TRUE(has(e.correct()->labels, "above-measured-ceiling"));
}

}  // namespace
}  // namespace kernelpro
