// SPDX-License-Identifier: Apache-2.0
// The cuda target on a real GPU: the contents of launch plans, and what candidates must not do.
// Skipped without a GPU or nvcc; scripts/gpu runs it on one.
#include "measure/cuda/evaluator.h"

#include <gtest/gtest.h>

#include "base/files.h"
#include "base/text.h"
#include "build/build.h"
#include "measure/ceilings/ceilings.h"

namespace kernelpro {
namespace {

// y[i] = 2 x[i] + x[i + N].
constexpr const char* kReference = R"(
#include "task.h"
__global__ void k(const float* x, double* y) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  if (i < N) y[i] = 2.0 * x[i] + x[i + N];
}
extern "C" void reference(const ReferenceArgs& a, cudaStream_t s) { k<<<(N + 255) / 256, 256, 0, s>>>(a.x, a.y); }
)";

class CudaEvaluatorTest : public ::testing::Test {
 protected:
  // One judge for all tests: its context costs a third of a second.
  static void SetUpTestSuite() {
    task_ = new Task;
    task_->name = "axpy";
    task_->tensors = {{"x", Role::kInput, DType::kFp32, {"2*N"}, {}, 0},
                      {"y", Role::kOutput, DType::kFp32, {"N"}, {}, 0}};
    task_->cases = {{"small", {{"N", 1001}}, false, {}}, {"big", {{"N", 4000003}}, true, {}}};
    task_->workspace = "4*N";
    task_->reference_cu = kReference;
    task_->reference_cpp =
        "#include \"task.h\"\nextern \"C\" void reference(const ReferenceArgs& a) {\n"
        "  for (int i = 0; i < N; ++i) a.y[i] = 2.0 * a.x[i] + a.x[i + N];\n}\n";
    auto machine = describe_cuda_machine();
    if (!machine) {
      skip_ = machine.error().text();
      return;
    }
    machine_ = new Machine(*machine);
    CompileSettings settings;
    settings.cuda_arch = machine_->arch;
    auto compiler = make_cuda_compiler(settings);
    auto host = make_cpu_compiler(settings);
    if (!compiler || !host) {
      skip_ = (compiler ? host.error() : compiler.error()).text();
      return;
    }
    compiler_ = compiler->release();
    host_ = host->release();
    EvaluateSettings evaluate;
    evaluate.timeout_s = 5;
    auto evaluator = make_cuda_evaluator(*task_, *machine_, evaluate);
    ASSERT_TRUE(evaluator);
    evaluator_ = evaluator->release();
    const auto references = build_references(*task_, TargetKind::kCuda, *compiler_, host_);
    ASSERT_TRUE(references) << references.error().text();
    ASSERT_TRUE(references->host);
    const auto prepared = evaluator_->prepare(*references);
    ASSERT_TRUE(prepared) << prepared.error().text();
  }
  static void TearDownTestSuite() {
    delete evaluator_;
    delete compiler_;
    delete host_;
    delete machine_;
    delete task_;
    evaluator_ = nullptr;
  }
  void SetUp() override {
    if (!skip_.empty()) GTEST_SKIP() << "no cuda target here: " << skip_;
    ASSERT_NE(evaluator_, nullptr);
  }

  static Subject build(const std::string& source) {
    const Candidate candidate{Language::kCuda, source, {}, {}};
    Subject subject;
    subject.hash = candidate.content_hash();
    for (const Case& c : task_->cases) {
      auto built = compiler_->compile(*task_, c, candidate);
      if (!built) {
        ADD_FAILURE() << built.error().text();
        return subject;
      }
      if (const auto* error = std::get_if<CompileError>(&*built)) {
        ADD_FAILURE() << error->log;
        return subject;
      }
      subject.binaries.push_back(std::get<Binary>(*built));
    }
    return subject;
  }
  static Evaluation evaluate(const std::string& source, const Subject* incumbent = nullptr) {
    const Subject subject = build(source);
    if (subject.binaries.size() != 2) return {};
    auto evaluation = evaluator_->evaluate(subject, incumbent);
    if (!evaluation) {
      ADD_FAILURE() << evaluation.error().text();
      return {};
    }
    return *evaluation;
  }
  // Host form: `device` code, then launch's body.
  static std::string host_form(const std::string& device, const std::string& body) {
    return "#include \"task.h\"\n#include <cstdio>\n" + device +
           "\nextern \"C\" void launch(const Args& a, cudaStream_t s) {\n" + body + "\n}\n";
  }
  static void expect(const std::string& source, const std::string& outcome,
                     const std::string& part) {
    const Evaluation e = evaluate(source);
    const std::string summary = outcome_summary(e.outcome);
    EXPECT_EQ(outcome_name(e.outcome), outcome) << summary;
    EXPECT_TRUE(contains(summary, part)) << summary;
    // The machine still works afterwards.
    const Evaluation good = evaluate(host_form(kGood, kGoodLaunch));
    EXPECT_TRUE(good.correct() != nullptr) << outcome_summary(good.outcome);
  }
  static void expect_correct(const std::string& source) {
    const Evaluation e = evaluate(source);
    ASSERT_TRUE(e.correct() != nullptr) << outcome_summary(e.outcome);
    EXPECT_EQ(e.trust, "plan");
    EXPECT_GT(score_us(e), 0);
  }

  static constexpr const char* kGood =
      "__global__ void k(const float* x, float* y) {\n"
      "  const int i = blockIdx.x * 256 + threadIdx.x;\n"
      "  if (i < N) y[i] = 2 * x[i] + x[i + N];\n}";
  static constexpr const char* kGoodLaunch = "k<<<(N + 255) / 256, 256, 0, s>>>(a.x, a.y);";

  static inline Task* task_ = nullptr;
  static inline Machine* machine_ = nullptr;
  static inline Compiler* compiler_ = nullptr;
  static inline Compiler* host_ = nullptr;
  static inline Evaluator* evaluator_ = nullptr;
  static inline std::string skip_;
};

TEST_F(CudaEvaluatorTest, HostFormIsCorrectAndTimed) {
  const Evaluation e = evaluate(host_form(kGood, kGoodLaunch));
  ASSERT_TRUE(e.correct() != nullptr) << outcome_summary(e.outcome);
  ASSERT_EQ(e.correct()->timings.size(), 1u);
  EXPECT_EQ(e.correct()->timings[0].case_name, "big");
  EXPECT_GT(e.correct()->timings[0].median_us, 5);
  EXPECT_LT(e.correct()->timings[0].median_us, 2000);
  EXPECT_GT(e.correct()->observed.at("launch__waves_per_multiprocessor"), 1);
}

TEST_F(CudaEvaluatorTest, PlanFormIsCorrectAndFasterThanASlowOne) {
  const std::string text =
      std::string("#include \"task.h\"\n") + kGood +
      "\nKP_LAUNCH(k, kp::dim((N + 255) / 256), kp::dim(256), 0, arg::x, arg::y)\n";
  const Subject slow = build(
      "#include \"task.h\"\n__global__ void k(const float* x, float* y) {\n"
      "  for (int i = threadIdx.x; i < N; i += 1024) y[i] = 2 * x[i] + x[i + N];\n}\n"
      "KP_LAUNCH(k, kp::dim(1), kp::dim(1024), 0, arg::x, arg::y)\n");
  const Evaluation e = evaluate(text, &slow);
  ASSERT_TRUE(e.correct() != nullptr) << outcome_summary(e.outcome);
  ASSERT_TRUE(e.correct()->versus);
  EXPECT_GT(e.correct()->versus->low, 5);
}

TEST_F(CudaEvaluatorTest, AKernelTiesWithItself) {
  const Subject same = build(host_form(kGood, kGoodLaunch));
  const Evaluation e = evaluate(host_form(kGood, kGoodLaunch), &same);
  ASSERT_TRUE(e.correct() && e.correct()->versus);
  EXPECT_NEAR(e.correct()->versus->ratio, 1, 0.03);
}

TEST_F(CudaEvaluatorTest, PlansHoldWhatKernelsNeed) {
  // Two streams joined by events, a template kernel, 100 KB of dynamic shared memory, a memset and
  // a device copy through the workspace.
  expect_correct(host_form(
      "template <int kHalf> __global__ void part(const float* x, float* w) {\n"
      "  extern __shared__ float big[];\n"
      "  big[threadIdx.x + 25000 - 256] = threadIdx.x;\n"
      "  const int i = (blockIdx.x + kHalf * gridDim.x) * 256 + threadIdx.x;\n"
      "  if (i < N) w[i] += 2 * x[i] + x[i + N];\n}",
      "cudaStream_t t; cudaEvent_t fork, join;\n"
      "cudaStreamCreateWithFlags(&t, cudaStreamNonBlocking);\n"
      "cudaEventCreateWithFlags(&fork, cudaEventDisableTiming);\n"
      "cudaEventCreateWithFlags(&join, cudaEventDisableTiming);\n"
      "float* w = static_cast<float*>(a.workspace);\n"
      "cudaMemsetAsync(w, 0, N * sizeof(float), s);\n"
      "cudaEventRecord(fork, s); cudaStreamWaitEvent(t, fork);\n"
      "const int blocks = (N + 511) / 512;\n"
      "cudaFuncSetAttribute(part<0>, cudaFuncAttributeMaxDynamicSharedMemorySize, 100000);\n"
      "cudaFuncSetAttribute(part<1>, cudaFuncAttributeMaxDynamicSharedMemorySize, 100000);\n"
      "part<0><<<blocks, 256, 100000, s>>>(a.x, w);\n"
      "part<1><<<blocks, 256, 100000, t>>>(a.x, w);\n"
      "cudaEventRecord(join, t); cudaStreamWaitEvent(s, join);\n"
      "cudaMemcpyAsync(a.y, w, N * sizeof(float), cudaMemcpyDeviceToDevice, s);"));
}

// Workers for plans without parallel kernels have one hardware queue; others need several.
TEST_F(CudaEvaluatorTest, KernelsOfACallRunSideBySideWhereThePlanLetsThem) {
  const std::string half =
      "template <int kHalf> __global__ void half(const float* x, float* y) {\n"
      "  for (int i = kHalf + 2 * (blockIdx.x * 256 + threadIdx.x); i < N; i += 2 * 256 * 24)\n"
      "    y[i] = 2 * x[i] + x[i + N];\n}";
  const std::string chain =
      "half<0><<<24, 256, 0, s>>>(a.x, a.y);\n"
      "half<1><<<24, 256, 0, s>>>(a.x, a.y);";
  const std::string fork =
      "cudaStream_t t; cudaEvent_t fork, join;\n"
      "cudaStreamCreateWithFlags(&t, cudaStreamNonBlocking);\n"
      "cudaEventCreateWithFlags(&fork, cudaEventDisableTiming);\n"
      "cudaEventCreateWithFlags(&join, cudaEventDisableTiming);\n"
      "cudaEventRecord(fork, s); cudaStreamWaitEvent(t, fork);\n"
      "half<0><<<24, 256, 0, s>>>(a.x, a.y);\n"
      "half<1><<<24, 256, 0, t>>>(a.x, a.y);\n"
      "cudaEventRecord(join, t); cudaStreamWaitEvent(s, join);";
  const Subject one = build(host_form(half, chain)), both = build(host_form(half, fork));
  // A host form's plan is unknown in the first round, known in the second.
  for (int round = 0; round < 2; ++round) {
    const Evaluation alone = evaluate(host_form(half, chain), &one);
    ASSERT_TRUE(alone.correct() && alone.correct()->versus) << outcome_summary(alone.outcome);
    EXPECT_NEAR(alone.correct()->versus->ratio, 1, 0.03);
    const Evaluation faster = evaluate(host_form(half, fork), &one);
    ASSERT_TRUE(faster.correct() && faster.correct()->versus) << outcome_summary(faster.outcome);
    EXPECT_GT(faster.correct()->versus->ratio, 1.5);
    const Evaluation slower = evaluate(host_form(half, chain), &both);
    ASSERT_TRUE(slower.correct() && slower.correct()->versus) << outcome_summary(slower.outcome);
    EXPECT_LT(slower.correct()->versus->ratio, 1 / 1.5);
    const auto confirmed = evaluator_->confirm(one, one);
    ASSERT_TRUE(confirmed && confirmed->correct());
  }
}

TEST_F(CudaEvaluatorTest, PlansHoldClusters) {
  expect_correct(host_form(
      "#include <cooperative_groups.h>\n"
      "__global__ void k(const float* x, float* y) {\n"
      "  auto cluster = cooperative_groups::this_cluster();\n"
      "  if (cluster.num_blocks() != 4) return;\n"
      "  __shared__ float seen; if (threadIdx.x == 0) seen = cluster.block_rank();\n"
      "  cluster.sync();\n"
      "  const float other = *cluster.map_shared_rank(&seen, (cluster.block_rank() + 1) % 4);\n"
      "  cluster.sync();\n"
      "  if (other != (cluster.block_rank() + 1) % 4) return;\n"
      "  const int i = blockIdx.x * 256 + threadIdx.x;\n"
      "  if (i < N) y[i] = 2 * x[i] + x[i + N];\n}",
      "cudaLaunchConfig_t c{}; c.gridDim = (N + 1023) / 1024 * 4; c.blockDim = 256; c.stream = s;\n"
      "cudaLaunchAttribute at{}; at.id = cudaLaunchAttributeClusterDimension;\n"
      "at.val.clusterDim.x = 4; at.val.clusterDim.y = 1; at.val.clusterDim.z = 1;\n"
      "c.attrs = &at; c.numAttrs = 1;\n"
      "cudaLaunchKernelEx(&c, k, a.x, a.y);"));
}

TEST_F(CudaEvaluatorTest, PlansHoldDependentLaunches) {
  expect_correct(host_form(
      "__global__ void first(const float* x, float* w) {\n"
      "  const int i = blockIdx.x * 256 + threadIdx.x; if (i < N) w[i] = 2 * x[i];\n"
      "  cudaTriggerProgrammaticLaunchCompletion();\n}\n"
      "__global__ void second(const float* x, const float* w, float* y) {\n"
      "  cudaGridDependencySynchronize();\n"
      "  const int i = blockIdx.x * 256 + threadIdx.x; if (i < N) y[i] = w[i] + x[i + N];\n}",
      "float* w = static_cast<float*>(a.workspace);\n"
      "first<<<(N + 255) / 256, 256, 0, s>>>(a.x, w);\n"
      "cudaLaunchConfig_t c{}; c.gridDim = (N + 255) / 256; c.blockDim = 256; c.stream = s;\n"
      "cudaLaunchAttribute at{}; at.id = cudaLaunchAttributeProgrammaticStreamSerialization;\n"
      "at.val.programmaticStreamSerializationAllowed = 1; c.attrs = &at; c.numAttrs = 1;\n"
      "cudaLaunchKernelEx(&c, second, a.x, (const float*)w, a.y);"));
}

TEST_F(CudaEvaluatorTest, WrongResultsAreExplained) {
  const std::string tail =
      "__global__ void k(const float* x, float* y) {\n"
      "  const int i = blockIdx.x * 256 + threadIdx.x;\n"
      "  if (i < N - N % 256) y[i] = 2 * x[i] + x[i + N];\n}";
  expect(host_form(tail, kGoodLaunch), "wrong-result", "never written");
  const std::string nan =
      "__global__ void k(const float* x, float* y) {\n"
      "  const int i = blockIdx.x * 256 + threadIdx.x;\n"
      "  if (i < N) y[i] = i == 17 ? 0.0f / (x[i] - x[i]) : 2 * x[i] + x[i + N];\n}";
  expect(host_form(nan, kGoodLaunch), "wrong-result", "nan");
}

TEST_F(CudaEvaluatorTest, MemoisingInDeviceVariablesDoesNotHelp) {
  expect(host_form("__device__ float kept[4000003]; __device__ int calls;\n"
                   "__global__ void k(const float* x, float* y) {\n"
                   "  const int i = blockIdx.x * 256 + threadIdx.x;\n"
                   "  if (i >= N) return;\n"
                   "  if (calls == 0) kept[i] = 2 * x[i] + x[i + N];\n"
                   "  y[i] = kept[i];\n}\n"
                   "__global__ void count() { ++calls; }",
                   "k<<<(N + 255) / 256, 256, 0, s>>>(a.x, a.y); count<<<1, 1, 0, s>>>();"),
         "wrong-result", "y");
}

TEST_F(CudaEvaluatorTest, MemoryThatIsNotTheirs) {
  expect(host_form("__global__ void k(float* x, float* y) {\n"
                   "  const int i = blockIdx.x * 256 + threadIdx.x;\n"
                   "  if (i < N) { y[i] = 2 * x[i] + x[i + N]; x[i] = 0; }\n}",
                   "k<<<(N + 255) / 256, 256, 0, s>>>(const_cast<float*>(a.x), a.y);"),
         "rejected", "input-mutation");
  expect(host_form("__global__ void k(const float* x, float* y) {\n"
                   "  const int i = blockIdx.x * 256 + threadIdx.x;\n"
                   "  if (i < N) y[i] = 2 * x[i] + x[i + N];\n  if (i == 0) y[N] = 1;\n}",
                   kGoodLaunch),
         "rejected", "past the end of y");
  expect(host_form("__global__ void k(const float* x, float* y) {\n"
                   "  const int i = blockIdx.x * 256 + threadIdx.x;\n"
                   "  if (i < N) y[i + 100000000] = 2 * x[i] + x[i + N];\n}",
                   kGoodLaunch),
         "crashed", "ILLEGAL_ADDRESS");
  expect(host_form(kGood,
                   "float* w; cudaMalloc(&w, 4 * N); k<<<(N + 255) / 256, 256, 0, s>>>(a.x, w);"),
         "rejected", "");
  expect(host_form("__device__ float own[4000003];\n" + std::string(kGood),
                   "void* w; cudaGetSymbolAddress(&w, own);\n"
                   "k<<<(N + 255) / 256, 256, 0, s>>>(a.x, (float*)w);\n"
                   "cudaMemcpyAsync(a.y, w, 4 * N, cudaMemcpyDeviceToDevice, s);"),
         "rejected", "neither a tensor nor the workspace");
}

TEST_F(CudaEvaluatorTest, HostCodeHasNoSay) {
  expect(host_form(kGood, ""), "crashed", "no kernel");
  expect(host_form(kGood, "k<<<(N + 255) / 256, 4096, 0, s>>>(a.x, a.y);"), "crashed",
         "cudaErrorInvalid");
  expect(host_form(kGood, "throw 42;"), "crashed", "threw");
  expect(host_form(kGood, "for (;;) {}"), "timed-out", "");
  expect(host_form(kGood, "*(volatile int*)nullptr = 1;"), "crashed", "signal 11");
  expect(host_form("#include <unistd.h>\n" + std::string(kGood), "fork();"), "rejected", "fork");
  expect(host_form("#include <cstdlib>\n" + std::string(kGood), "system(\"true\");"), "rejected",
         "");
  expect(host_form("#include <sys/socket.h>\n" + std::string(kGood),
                   "socket(AF_INET, SOCK_STREAM, 0);"),
         "rejected", "socket");
  expect(host_form(kGood, "fopen(\"/tmp/kernelpro-written\", \"w\");"), "rejected", "file-write");
  expect(host_form(kGood, "for (;;) puts(\"0123456789012345678901234567890123456789\");"),
         "crashed", "printed");
  expect(host_form("static void call(void*) {}\n" + std::string(kGood),
                   std::string(kGoodLaunch) + " cudaLaunchHostFunc(s, call, nullptr);"),
         "rejected", "host function");
  expect(host_form(kGood, std::string(kGoodLaunch) + " cudaStreamSynchronize(s);"), "rejected",
         "capture");
}

TEST_F(CudaEvaluatorTest, PlansRefuseWhatTheyCannotHold) {
  expect(
      host_form(
          kGood,
          "cudaLaunchConfig_t c{}; c.gridDim = (N + 255) / 256; c.blockDim = 256; c.stream = s;\n"
          "cudaLaunchAttribute at{}; at.id = cudaLaunchAttributeAccessPolicyWindow;\n"
          "at.val.accessPolicyWindow.base_ptr = const_cast<float*>(a.x);\n"
          "at.val.accessPolicyWindow.num_bytes = 4096;\n"
          "at.val.accessPolicyWindow.hitRatio = 1;\n"
          "at.val.accessPolicyWindow.hitProp = cudaAccessPropertyPersisting;\n"
          "c.attrs = &at; c.numAttrs = 1;\n"
          "cudaLaunchKernelEx(&c, k, a.x, a.y);"),
      "rejected", "access policy window");
}

TEST_F(CudaEvaluatorTest, KernelsThatNeverEnd) {
  expect(
      host_form("__global__ void k(const float* x, volatile float* y) { while (y[0] != 12.5f) {} }",
                "k<<<1, 1, 0, s>>>(a.x, a.y);"),
      "timed-out", "");
}

TEST_F(CudaEvaluatorTest, ConfirmMeasuresMore) {
  const Subject same = build(host_form(kGood, kGoodLaunch));
  const auto e = evaluator_->confirm(same, same);
  ASSERT_TRUE(e) << e.error().text();
  ASSERT_TRUE(e->correct() && e->correct()->versus);
  EXPECT_GE(e->correct()->timings[0].samples, 60);
}

// The same work plus an exponential loop draws more; host form and plan form draw the same.
TEST_F(CudaEvaluatorTest, EnergyOfACall) {
  const std::string wasteful = replace_all(kGood, "y[i] = 2",
                                           "{ float w = x[i]; for (int j = 0; j < 300; ++j) w = "
                                           "__expf(-w * w); y[i] = (w == 77 ? 1 : 2)");
  const Subject waste =
      build(host_form(replace_all(wasteful, "x[i + N];", "x[i + N]; }"), kGoodLaunch));
  const Subject good = build(host_form(kGood, kGoodLaunch));
  const Subject plan =
      build(std::string("#include \"task.h\"\n") + kGood +
            "\nKP_LAUNCH(k, kp::dim((N + 255) / 256), kp::dim(256), 0, arg::x, arg::y);");
  for (const Subject* each : {&waste, &good, &plan}) ASSERT_EQ(each->binaries.size(), 2u);
  const auto measured = evaluator_->energy(good, &waste, {3, 0.4});
  ASSERT_TRUE(measured) << measured.error().text();
  const auto* energy = std::get_if<Energy>(&*measured);
  ASSERT_NE(energy, nullptr) << outcome_summary(std::get<Outcome>(*measured));
  EXPECT_EQ(energy->case_name, "big");
  EXPECT_GT(energy->millijoules, 1);
  EXPECT_LT(energy->variation, 0.05);
  EXPECT_GT(energy->busy_w, energy->idle_w);
  EXPECT_GT(energy->idle_w, 20);
  ASSERT_TRUE(energy->versus);
  EXPECT_GT(energy->versus->low, 1.1) << energy_text(*energy);
  const auto alike = evaluator_->energy(plan, &good, {3, 0.4});
  ASSERT_TRUE(alike) << alike.error().text();
  ASSERT_TRUE(std::holds_alternative<Energy>(*alike));
  EXPECT_NEAR(std::get<Energy>(*alike).versus->ratio, 1, 0.05);
  // A wrong result during the measurement is detected.
  const Subject wrong = build(host_form(replace_all(kGood, "2 * x[i]", "3 * x[i]"), kGoodLaunch));
  const auto caught = evaluator_->energy(wrong, nullptr, {2, 0.2});
  ASSERT_TRUE(caught) << caught.error().text();
  EXPECT_TRUE(std::holds_alternative<Outcome>(*caught));
}

}  // namespace
}  // namespace kernelpro
