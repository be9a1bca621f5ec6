// SPDX-License-Identifier: Apache-2.0
// Hardware counters of candidates. On a GPU it prints each step with its time, so that one run
// shows what works there; without one only the reasons can be tested.
#include "measure/cuda/profile.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>

#include "base/clock.h"
#include "base/cuda_toolkit.h"
#include "base/text.h"
#include "build/build.h"
#include "measure/ceilings/ceilings.h"
#include "measure/cuda/evaluator.h"

namespace kernelpro {
namespace {

void print(const char* what, const CounterAnswers& answers) {
  std::printf("== %s: source %s, chip %s, %d passes, %zu launches, %d left out\n", what,
              answers.source.c_str(), answers.chip.c_str(), answers.passes, answers.launches.size(),
              answers.left_out);
  for (const auto& [phase, ms] : answers.phases_ms) {
    std::printf("   %-16s %8.1f ms\n", phase.c_str(), ms);
  }
  for (const Missing& m : answers.missing) {
    std::printf("   missing %s: %s; %s\n", join_text(missing_names(m), ", ").c_str(),
                m.reason.c_str(), m.next.c_str());
  }
  for (std::size_t i = 0; i < answers.launches.size() && i < 3; ++i) {
    const LaunchCounters& launch = answers.launches[i];
    std::printf("   node %d %s: %zu values\n", launch.node, launch.function.c_str(),
                launch.values.size());
    for (const auto& [name, value] : launch.values) {
      std::printf("     %-75s %.6g\n", name.c_str(), value);
    }
  }
  std::fflush(stdout);
}

double value(const LaunchCounters& launch, const char* name) {
  const auto found = launch.values.find(name);
  return found == launch.values.end() ? -1 : found->second;
}

// y[i] = 2 x[i] + x[i + N], as in evaluator_test.cc.
constexpr const char* kReference = R"(
#include "task.h"
__global__ void k(const float* x, double* y) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  if (i < N) y[i] = 2.0 * x[i] + x[i + N];
}
extern "C" void reference(const ReferenceArgs& a, cudaStream_t s) { k<<<(N + 255) / 256, 256, 0, s>>>(a.x, a.y); }
)";

constexpr int kElements = 1 << 24;
constexpr double kBytes = 4.0 * kElements;  // of one vector

constexpr const char* kOne = R"(
__global__ void axpy(const float* x, float* y) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  if (i < N) y[i] = 2.0f * x[i] + x[i + N];
}
)";
constexpr const char* kOneLaunch = "axpy<<<(N + 255) / 256, 256, 0, s>>>(a.x, a.y);";

// Through the workspace, with a memset and a copy between.
constexpr const char* kTwo = R"(
__global__ void twice(const float* x, float* w) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  if (i < N) w[i] = 2.0f * x[i];
}
__global__ void add(const float* x, const float* w, float* y) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  if (i < N) y[i] += w[i] + x[i + N];
}
)";
constexpr const char* kTwoLaunch =
    "float* w = static_cast<float*>(a.workspace);\n"
    "twice<<<(N + 255) / 256, 256, 0, s>>>(a.x, w);\n"
    "cudaMemsetAsync(a.y, 0, sizeof(float) * N, s);\n"
    "add<<<(N + 255) / 256, 256, 0, s>>>(a.x, w, a.y);";

class CudaProfileGpu : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { set_up(CounterSet::kFull); }
  static void set_up(CounterSet counters) {
    task_ = new Task;
    task_->name = "axpy";
    task_->tensors = {{"x", Role::kInput, DType::kFp32, {"2*N"}, {}, 0},
                      {"y", Role::kOutput, DType::kFp32, {"N"}, {}, 0}};
    task_->cases = {{"big", {{"N", kElements}}, true, {}}};
    task_->workspace = "4*N";
    task_->reference_cu = kReference;
    auto machine = describe_cuda_machine();
    if (!machine) {
      skip_ = machine.error().text();
      return;
    }
    machine_ = new Machine(*machine);
    CompileSettings settings;
    settings.cuda_arch = machine_->arch;
    auto compiler = make_cuda_compiler(settings);
    ASSERT_TRUE(compiler) << compiler.error().text();
    compiler_ = compiler->release();
    EvaluateSettings evaluate;
    evaluate.timeout_s = 10;
    evaluate.counters = counters;
    auto evaluator = make_cuda_evaluator(*task_, *machine_, evaluate);
    ASSERT_TRUE(evaluator);
    evaluator_ = evaluator->release();
    const auto references = build_references(*task_, TargetKind::kCuda, *compiler_, nullptr);
    ASSERT_TRUE(references) << references.error().text();
    const auto prepared = evaluator_->prepare(*references);
    ASSERT_TRUE(prepared) << prepared.error().text();
  }
  static void TearDownTestSuite() {
    delete evaluator_;
    delete compiler_;
    delete machine_;
    delete task_;
    evaluator_ = nullptr;
  }
  void SetUp() override {
    if (!skip_.empty()) GTEST_SKIP() << "no cuda target here: " << skip_;
    ASSERT_NE(evaluator_, nullptr);
  }

  static Subject build(const std::string& device, const std::string& body) {
    const Candidate candidate{Language::kCuda,
                              "#include \"task.h\"\n" + device +
                                  "\nextern \"C\" void launch(const Args& a, cudaStream_t s) {\n" +
                                  body + "\n}\n",
                              {},
                              {}};
    Subject subject;
    subject.hash = candidate.content_hash();
    auto built = compiler_->compile(*task_, task_->cases[0], candidate);
    if (!built) {
      ADD_FAILURE() << built.error().text();
    } else if (const auto* error = std::get_if<CompileError>(&*built)) {
      ADD_FAILURE() << error->log;
    } else {
      subject.binaries.push_back(std::get<Binary>(*built));
    }
    return subject;
  }
  // Microseconds; 0 if it is not correct.
  static double evaluate(const Subject& subject) {
    const auto evaluation = evaluator_->evaluate(subject, nullptr);
    const Correct* correct = evaluation ? evaluation->correct() : nullptr;
    if (correct == nullptr) {
      ADD_FAILURE() << (evaluation ? outcome_summary(evaluation->outcome)
                                   : evaluation.error().text());
      return 0;
    }
    return correct->timings.at(0).median_us;
  }
  // Whether counters are allowed here; prints the reason if not.
  static bool counted(const CounterAnswers& answers) { return answers.source == "cupti"; }

  static inline Task* task_ = nullptr;
  static inline Machine* machine_ = nullptr;
  static inline Compiler* compiler_ = nullptr;
  static inline Evaluator* evaluator_ = nullptr;
  static inline std::string skip_;
};

TEST_F(CudaProfileGpu, CountsOneKernel) {
  const Subject subject = build(kOne, kOneLaunch);
  ASSERT_EQ(subject.binaries.size(), 1u);
  const double us = evaluate(subject);
  const CounterAnswers full = evaluator_->profile(subject, 0, CounterSet::kFull);
  print("axpy, full", full);
  if (!counted(full)) GTEST_SKIP() << "no counters here";
  ASSERT_EQ(full.launches.size(), 1u);
  EXPECT_EQ(full.launches[0].function, "_Z4axpyPKfPf");
  EXPECT_EQ(full.left_out, 0);
  EXPECT_NEAR(value(full.launches[0], "dram__bytes_read.sum"), 2 * kBytes, 0.1 * kBytes);
  EXPECT_NEAR(value(full.launches[0], "gpu__time_duration.sum") / 1e3, us, 0.25 * us);
  EXPECT_NEAR(value(full.launches[0], "smsp__thread_inst_executed.sum") / kElements, 12, 8);
  EXPECT_EQ(value(full.launches[0], "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"),
            2 * kBytes / 32);
  const CounterAnswers again = evaluator_->profile(subject, 0, CounterSet::kFull);
  print("axpy, full again", again);
  const CounterAnswers triage = evaluator_->profile(subject, 0, CounterSet::kTriage);
  print("axpy, triage", triage);
  const CounterAnswers triage2 = evaluator_->profile(subject, 0, CounterSet::kTriage);
  print("axpy, triage again", triage2);
  ASSERT_EQ(triage2.launches.size(), 1u);
  EXPECT_LT(triage2.passes, full.passes);
  const double after = evaluate(subject);
  std::printf("== timing: %.2f us before, %.2f us with the profiler's process idle\n", us, after);
  EXPECT_NEAR(after, us, 0.03 * us);
}

TEST_F(CudaProfileGpu, CountsEachKernelOfACall) {
  const Subject subject = build(kTwo, kTwoLaunch);
  ASSERT_EQ(subject.binaries.size(), 1u);
  evaluate(subject);
  const CounterAnswers answers = evaluator_->profile(subject, 0, CounterSet::kFull);
  print("two kernels", answers);
  if (!counted(answers)) GTEST_SKIP() << "no counters here";
  ASSERT_EQ(answers.launches.size(), 2u);
  EXPECT_TRUE(contains(answers.launches[0].function, "twice"));
  EXPECT_TRUE(contains(answers.launches[1].function, "add"));
  const auto facts = evaluator_->call_facts(subject, 0);
  ASSERT_TRUE(facts);
  for (const LaunchCounters& launch : answers.launches) {
    EXPECT_EQ(facts->plan.nodes.at(static_cast<std::size_t>(launch.node)).function,
              launch.function);
  }
  EXPECT_EQ(value(answers.launches[0], "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"),
            kBytes / 32);
  EXPECT_EQ(value(answers.launches[1], "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"),
            3 * kBytes / 32);
}

TEST_F(CudaProfileGpu, KeepsLaunchAttributes) {
  const Subject subject = build(
      R"(
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
__global__ void __cluster_dims__(2, 1, 1) in_clusters(const float* x, float* y) {
  __shared__ float value;
  cg::cluster_group cluster = cg::this_cluster();
  if (threadIdx.x == 0) value = 2.0f;
  cluster.sync();
  const float two = *cluster.map_shared_rank(&value, cluster.block_rank() ^ 1);
  const int i = blockIdx.x * 256 + threadIdx.x;
  if (i < N) y[i] = two * x[i];
  cluster.sync();
}
__global__ void together(const float* x, float* y) {
  cg::this_grid().sync();
  for (int i = blockIdx.x * 256 + threadIdx.x; i < N; i += gridDim.x * 256) y[i] += x[i + N];
}
)",
      "in_clusters<<<N / 256, 256, 0, s>>>(a.x, a.y);\n"
      "const float* x = a.x; float* y = a.y; void* args[] = {&x, &y};\n"
      "cudaLaunchCooperativeKernel((void*)together, dim3(132), dim3(256), args, 0, s);");
  ASSERT_EQ(subject.binaries.size(), 1u);
  evaluate(subject);
  const CounterAnswers answers = evaluator_->profile(subject, 0, CounterSet::kTriage);
  print("clusters and a cooperative launch", answers);
  if (!answers.missing.empty() && !counted(answers)) GTEST_SKIP() << "no counters here";
  EXPECT_EQ(answers.launches.size(), 2u);
}

TEST_F(CudaProfileGpu, OfManyLaunchesTakesSome) {
  const Subject subject = build(
      "__global__ void part(const float* x, float* y, int from, int to) {\n"
      "  for (int i = from + blockIdx.x * 256 + threadIdx.x; i < to; i += gridDim.x * 256)\n"
      "    y[i] = 2.0f * x[i] + x[i + N];\n}\n",
      "for (int p = 0; p < 256; ++p)\n"
      "  part<<<64 + p % 5, 256, 0, s>>>(a.x, a.y, p * (N / 256), (p + 1) * (N / 256));");
  ASSERT_EQ(subject.binaries.size(), 1u);
  evaluate(subject);
  const CounterAnswers answers = evaluator_->profile(subject, 0, CounterSet::kTriage);
  print("256 launches", answers);
  if (!counted(answers)) GTEST_SKIP() << "no counters here";
  // The others are timed.
  EXPECT_EQ(answers.launches.size(), 256u);
  const auto counted = std::count_if(answers.launches.begin(), answers.launches.end(),
                                     [](const auto& launch) { return launch.values.size() > 1; });
  EXPECT_EQ(counted, 4) << "of one kernel";
  EXPECT_EQ(answers.left_out, 252);
}

// Kernels on two branches that wait for each other cannot run one by one: the evidence lacks
// counters, the candidate is not at fault, and the next one is counted again.
TEST_F(CudaProfileGpu, GivesUpOnKernelsThatWaitForEachOther) {
  const Subject subject = build(
      R"(
__device__ volatile int first_ran, second_ran;
__global__ void reset() { first_ran = second_ran = 0; }
__global__ void first(const float* x, float* y) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  if (blockIdx.x == 0 && threadIdx.x == 0) {
    first_ran = 1;
    while (second_ran == 0) {}
  }
  for (int k = i; k < N; k += gridDim.x * 256) y[k] = 2.0f * x[k] + x[k + N];
}
__global__ void second() {
  second_ran = 1;
  while (first_ran == 0) {}
}
)",
      "cudaEvent_t fork, join; cudaStream_t other;\n"
      "cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking);\n"
      "cudaEventCreateWithFlags(&fork, cudaEventDisableTiming);\n"
      "cudaEventCreateWithFlags(&join, cudaEventDisableTiming);\n"
      "reset<<<1, 1, 0, s>>>();\n"
      "cudaEventRecord(fork, s); cudaStreamWaitEvent(other, fork, 0);\n"
      "second<<<1, 1, 0, other>>>();\n"
      "first<<<64, 256, 0, s>>>(a.x, a.y);\n"
      "cudaEventRecord(join, other); cudaStreamWaitEvent(s, join, 0);");
  ASSERT_EQ(subject.binaries.size(), 1u);
  const auto evaluation = evaluator_->evaluate(subject, nullptr);
  ASSERT_TRUE(evaluation) << evaluation.error().text();
  EXPECT_EQ(outcome_name(evaluation->outcome), "timed-out")
      << "branches are checked one by one too";
  const double start = real_clock().now_s();
  const CounterAnswers answers = evaluator_->profile(subject, 0, CounterSet::kTriage);
  print("kernels that wait for each other", answers);
  std::printf("   given up after %.1f s\n", real_clock().now_s() - start);
  EXPECT_TRUE(answers.launches.empty());
  ASSERT_FALSE(answers.missing.empty());
  const Subject good = build(kOne, kOneLaunch);
  evaluate(good);
  const CounterAnswers after = evaluator_->profile(good, 0, CounterSet::kTriage);
  print("after it", after);
}

// Without a process of ours that holds the counters: ncu could not have them then.
class CudaProfileNcu : public CudaProfileGpu {
 protected:
  static void SetUpTestSuite() { set_up(CounterSet::kOff); }
};

TEST_F(CudaProfileNcu, TellsTheSame) {
  if (find_cuda_tool("ncu").empty()) GTEST_SKIP() << "ncu is not installed";
  const Subject subject = build(kOne, kOneLaunch);
  ASSERT_EQ(subject.binaries.size(), 1u);
  evaluate(subject);
  const auto facts = evaluator_->call_facts(subject, 0);
  ASSERT_TRUE(facts);
  CudaCase state;
  state.c = &task_->cases[0];
  state.judged = judge_tensors(*task_, task_->cases[0], Policy::kContract, true);
  state.layout = facts->layout;
  const double start = real_clock().now_s();
  const auto report =
      ncu_report(subject.binaries[0], facts->plan, state, CounterSet::kFull, 120, "");
  std::printf("== ncu with the same counters: %.2f s\n", real_clock().now_s() - start);
  if (!report) GTEST_SKIP() << report.error().text();
  std::printf("%s\n", report->substr(0, 4000).c_str());
  EXPECT_TRUE(contains(*report, "axpy"));
}

// Without a usable GPU, the reason comes with a remedy.
TEST(CudaProfile, SaysWhyThereIsNothing) {
  if (describe_cuda_machine()) GTEST_SKIP() << "there is a GPU";
  Task task;
  task.cases = {{"big", {}, true, {}}};
  std::vector<CudaCase> cases(1);
  cases[0].c = &task.cases[0];
  CudaProfile profile("");
  const CounterAnswers answers =
      profile.collect(task, cases, cases[0], Binary(), LaunchPlan(), CounterSet::kTriage, 5);
  EXPECT_TRUE(answers.launches.empty());
  ASSERT_FALSE(answers.missing.empty());
  EXPECT_EQ(answers.missing[0].family, Family::kCounters);
  EXPECT_FALSE(answers.missing[0].reason.empty());
  EXPECT_FALSE(answers.missing[0].next.empty());
  // Asking again starts no new process.
  double ms = 0;
  for (int attempt = 0; attempt < 5; ++attempt) {  // a busy machine may delay one
    const CounterAnswers again =
        profile.collect(task, cases, cases[0], Binary(), LaunchPlan(), CounterSet::kFull, 5);
    ASSERT_FALSE(again.missing.empty());
    EXPECT_EQ(again.missing[0].reason, answers.missing[0].reason);
    ms = again.phases_ms.at("total");
    if (ms < 500) break;
  }
  EXPECT_LT(ms, 500);
}

}  // namespace
}  // namespace kernelpro
