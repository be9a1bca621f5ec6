// SPDX-License-Identifier: Apache-2.0
// Decisions of the cuda target without a GPU: memory, passes, symbols, shares, the protocol.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <map>
#include <set>

#include "base/files.h"
#include "base/process/subprocess.h"
#include "core/plan/protocol.h"
#include "measure/cuda/audit.h"
#include "measure/cuda/floor.h"
#include "measure/cuda/memory_plan.h"
#include "measure/cuda/passes.h"
#include "measure/cuda/symbols.h"
#include "measure/cuda/timing.h"

namespace kernelpro {
namespace {

constexpr double kMiB = 1 << 20;
constexpr double kGB = 1e9;

Task task_of(std::int64_t inputs, std::int64_t outputs) {
  Task task;
  task.tensors = {{"x", Role::kInput, DType::kFp32, {std::to_string(inputs)}, {}, 0},
                  {"w", Role::kParameter, DType::kFp32, {"1024"}, {}, 0},
                  {"y", Role::kOutput, DType::kFp32, {std::to_string(outputs)}, {}, 0}};
  task.cases = {{"big", {}, true, {}}};
  return task;
}

TEST(CudaMemoryPlan, CountsWhatIsMapped) {
  const Task task = task_of(1 << 20, 1 << 19);
  const MemoryNeed need = memory_need(task, task.cases[0], nullptr, 2 * kMiB);
  EXPECT_EQ(need.inputs, 6 * kMiB);  // 4 MiB and a little: tensors do not end with their mapping
  EXPECT_EQ(need.parameters, 2 * kMiB);
  EXPECT_EQ(need.outputs, 4 * kMiB);
  EXPECT_EQ(need.expected_wide, 6 * kMiB);
  EXPECT_FALSE(need.module);
}

TEST(CudaMemoryPlan, SmallTasksGetSetsForProbes) {
  const Task task = task_of(1 << 20, 1 << 20);
  const auto plan =
      plan_memory(memory_need(task, task.cases[0], nullptr, 2 * kMiB), 130 * kGB, 4, false);
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->rotation, 4);
  EXPECT_EQ(plan->extra, 1 + kProbeSets);
  EXPECT_TRUE(plan->wide);
}

TEST(CudaMemoryPlan, SmallSetsAreMore) {
  const auto wanted = [](std::int64_t n) {
    const Task task = task_of(n, n);
    return sets_wanted(memory_need(task, task.cases[0], nullptr, 2 * kMiB));
  };
  EXPECT_EQ(wanted(1 << 10), 8);
  EXPECT_EQ(wanted(1 << 20), 8);
  EXPECT_EQ(wanted(1 << 25), 4);
  EXPECT_EQ(wanted(1LL << 32), 4);
}

TEST(CudaMemoryPlan, LevelOneShapesFitOnOneGpu) {
  ModuleDescription module;
  // ReLU 4096 x 393216: 6.4 GB in, 6.4 GB out.
  Task relu = task_of(4096LL * 393216, 4096LL * 393216);
  module.intermediate_bytes = 6.5 * kGB;
  const double free_bytes = 150 * kGB - kContextBytes - 4 * kGB;
  const auto a =
      plan_memory(memory_need(relu, relu.cases[0], &module, 2 * kMiB), free_bytes, 4, false);
  ASSERT_TRUE(a);
  EXPECT_GE(a->rotation, 2);
  EXPECT_TRUE(a->wide);
  EXPECT_LE(a->bytes, free_bytes);
  // Average pooling: 17.2 GB in, 0.14 GB out.
  Task pool = task_of(16LL * 64 * 2048 * 2048, 16LL * 64 * 186 * 186);
  module.intermediate_bytes = 0.2 * kGB;
  const auto b =
      plan_memory(memory_need(pool, pool.cases[0], &module, 2 * kMiB), free_bytes, 4, false);
  ASSERT_TRUE(b);
  EXPECT_GE(b->rotation, 3);
  EXPECT_TRUE(b->wide);
  EXPECT_EQ(b->extra, 1);
}

TEST(CudaMemoryPlan, GivesUpSetsBeforeWidthAndThenSaysWhatIsMissing) {
  const Task task = task_of(1LL << 30, 1LL << 30);  // 4.3 GB each; expected 8.6 wide
  ModuleDescription module;
  module.intermediate_bytes = 4.3 * kGB;
  const MemoryNeed need = memory_need(task, task.cases[0], &module, 2 * kMiB);
  int before = 100;
  bool was_wide = true, narrow_seen = false;
  for (double free_gb = 140; free_gb > 20; free_gb -= 1) {
    const auto plan = plan_memory(need, free_gb * kGB, 4, false);
    if (!plan) break;
    EXPECT_LE(plan->bytes, free_gb * kGB);
    if (plan->wide == was_wide) {
      EXPECT_LE(plan->sets(), before);
    }
    EXPECT_TRUE(was_wide || !plan->wide) << "narrower with more memory";
    narrow_seen = narrow_seen || !plan->wide;
    before = plan->sets();
    was_wide = plan->wide;
  }
  EXPECT_TRUE(narrow_seen);
  EXPECT_FALSE(plan_memory(need, 20 * kGB, 4, false));
  const Error large = memory_shortage(need, "big", 20 * kGB, 0);
  EXPECT_EQ(large.kind, ErrorKind::kBadInput);
  EXPECT_NE(large.message.find("case big needs"), std::string::npos) << large.message;
  EXPECT_NE(large.message.find("20 GB are free"), std::string::npos) << large.message;
  EXPECT_NE(large.next.find("--set"), std::string::npos) << large.next;
  // What others hold is no fault of the task.
  const Error shared = memory_shortage(need, "big", 20 * kGB, 90 * kGB);
  EXPECT_EQ(shared.kind, ErrorKind::kEnvironment);
  EXPECT_NE(shared.message.find("other programs on this GPU hold 90 GB"), std::string::npos)
      << shared.message;
  // A native reference writes doubles only.
  const MemoryNeed native = memory_need(task, task.cases[0], nullptr, 2 * kMiB);
  EXPECT_FALSE(plan_memory(native, 30 * kGB, 4, false));
}

// A PyTorch candidate may have to run in host form, on a stage.
TEST(CudaMemoryPlan, LeavesRoomForAStageWhereMoreThanTheLeastFits) {
  const Task task = task_of(1LL << 28, 1LL << 28);
  ModuleDescription module;
  const MemoryNeed need = memory_need(task, task.cases[0], &module, 2 * kMiB);
  MemoryNeed native = need;
  native.module = false;
  const auto with = plan_memory(need, 130 * kGB, 4, false);
  const auto without = plan_memory(native, 130 * kGB, 4, false);
  ASSERT_TRUE(with && without);
  EXPECT_EQ(with->sets(), without->sets());
  EXPECT_EQ(with->held - without->held, need.inputs + need.parameters + need.outputs);
}

// A small case must leave room for a large one beside it, and no more than that.
TEST(CudaMemoryPlan, LeastIsTwoSetsAndNothingElse) {
  const Task task = task_of(1LL << 30, 1LL << 28);
  const MemoryNeed native = memory_need(task, task.cases[0], nullptr, 2 * kMiB);
  EXPECT_EQ(least_bytes(native),
            2 * (native.inputs + native.outputs + native.expected_wide + native.parameters));
  const auto plan = plan_memory(native, least_bytes(native), 4, false);
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->sets(), 2);
  EXPECT_FALSE(plan_memory(native, least_bytes(native) - 1, 4, false));
}

TEST(CudaPasses, NobodyFindsAnothersResults) {
  for (int sets = 2; sets <= 5; ++sets) {
    for (std::uint64_t pass = 0; pass < 40; ++pass) {
      const auto steps = plan_pass(sets, -1, true, true, 64, pass, 7);
      std::set<int> mine, others;
      for (const PassStep& step : steps) {
        if (!step.timed) continue;
        EXPECT_TRUE((step.candidate ? mine : others).insert(step.set).second) << "a set twice";
      }
      EXPECT_EQ(mine.size(), static_cast<std::size_t>(sets / 2));
      EXPECT_EQ(others.size(), mine.size());
      for (const PassStep& step : steps) {
        const bool touched = !step.candidate || !step.timed;
        EXPECT_FALSE(touched && mine.count(step.set)) << "somebody wrote where it is judged";
      }
    }
  }
}

TEST(CudaPasses, ASpareSetTakesTheUntimedCalls) {
  for (const bool incumbent : {false, true}) {
    for (std::uint64_t pass = 0; pass < 10; ++pass) {
      const auto steps = plan_pass(4, 4, incumbent, true, 64, pass, 7);
      EXPECT_EQ(steps.size(), incumbent ? 6u : 5u);
      for (const PassStep& step : steps) EXPECT_EQ(step.set == 4, !step.timed);
    }
  }
}

TEST(CudaPasses, AProbeMayBeAnyTimedCallOfTheCandidates) {
  std::set<std::size_t> places;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const auto plain = plan_pass(8, 8, true, true, 64, 2, 7);
    auto steps = plain;
    place_probes({9, 10}, seed, &steps);
    ASSERT_EQ(steps.size(), plain.size());
    for (std::size_t i = 0; i < steps.size(); ++i) {
      EXPECT_EQ(steps[i].probe, steps[i].set > 8);
      EXPECT_EQ(steps[i].candidate, plain[i].candidate);
      EXPECT_EQ(steps[i].timed, plain[i].timed);
      if (!steps[i].probe) continue;
      EXPECT_TRUE(steps[i].candidate && steps[i].timed);
      places.insert(i);
    }
    const std::vector<double> us(steps.size(), 1);
    EXPECT_EQ(couple_ratios(plain, us, steps, us).size(), timed_calls(plain) - 2);
  }
  EXPECT_EQ(places.size(), timed_calls(plan_pass(8, 8, true, true, 64, 2, 7)));
}

TEST(CudaPasses, CouplesSwapTheSetsAndOrdersVary) {
  std::map<int, int> first_sets;
  for (std::uint64_t q = 1; q < 60; ++q) {
    const auto a = plan_pass(4, -1, true, false, 64, 2 * q, 11);
    const auto b = plan_pass(4, -1, true, false, 64, 2 * q + 1, 11);
    std::set<int> mine_a, others_b;
    for (const PassStep& s : a) {
      if (s.candidate) mine_a.insert(s.set);
    }
    for (const PassStep& s : b) {
      if (!s.candidate) others_b.insert(s.set);
    }
    EXPECT_EQ(mine_a, others_b);
    ++first_sets[a.front().set * 2 + (a.front().candidate ? 1 : 0)];
  }
  EXPECT_EQ(first_sets.size(), 8u);  // any set, either arm
}

TEST(CudaPasses, RatiosCancelWhatASetCosts) {
  // Set 2 makes everything take twice as long; the candidate is 10 % faster.
  const auto cost = [](const PassStep& s) {
    return (s.set == 2 ? 20.0 : 10.0) * (s.candidate ? 1.0 : 1.1);
  };
  const auto a = plan_pass(4, -1, true, false, 64, 8, 3),
             b = plan_pass(4, -1, true, false, 64, 9, 3);
  std::vector<double> at, bt;
  for (const PassStep& s : a) at.push_back(cost(s));
  for (const PassStep& s : b) bt.push_back(cost(s));
  const auto ratios = couple_ratios(a, at, b, bt);
  ASSERT_EQ(ratios.size(), 2u);
  for (const double ratio : ratios) EXPECT_NEAR(ratio, 1.1, 1e-9);
}

TEST(CudaPasses, AloneOneSetWarmsUpAndTheOthersAreTimed) {
  const auto steps = plan_pass(4, -1, false, true, 64, 5, 1);
  ASSERT_EQ(steps.size(), 4u);
  EXPECT_FALSE(steps[0].timed);
  for (std::size_t i = 1; i < 4; ++i) {
    EXPECT_TRUE(steps[i].timed);
    EXPECT_NE(steps[i].set, steps[0].set);
  }
  EXPECT_EQ(plan_pass(4, -1, false, false, 1, 5, 1).size(), 1u);
  EXPECT_EQ(plan_pass(1, -1, false, true, 64, 5, 1).size(), 1u);
}

TEST(CudaShares, AreLowerEndsOfBinomialIntervals) {
  EXPECT_EQ(share_at_least(0, 32), 0);
  EXPECT_NEAR(share_at_least(32, 32), std::pow(0.05, 1.0 / 32), 1e-6);  // 0.911
  EXPECT_LT(share_at_least(16, 32), 0.5);
  EXPECT_GT(share_at_least(16, 32), 0.3);
}

// The cubin of a device source, or "" where there is no nvcc.
std::string cubin_of(const std::string& source, const std::string& flags = "") {
  const char* home = std::getenv("CUDA_HOME");
  const std::string beside = join(join(home != nullptr ? home : "/usr/local/cuda", "bin"), "nvcc");
  const std::string nvcc = exists(beside) ? beside : find_program("nvcc");
  if (nvcc.empty()) return "";
  const TempDir folder;
  const std::string in = join(folder.path(), "k.cu"), out = join(folder.path(), "k.cubin");
  EXPECT_TRUE(write_file(in, source));
  Command command;
  command.argv = {nvcc, "-arch=sm_90a", "-cubin", in, "-o", out};
  if (!flags.empty()) command.argv.push_back(flags);
  const auto exit = run(command);
  EXPECT_TRUE(exit && exit->ok()) << (exit ? exit->output : "");
  return read_file(out).value_or("");
}

TEST(CudaSymbols, NamesWhatEscapesAPlan) {
  const std::string plain =
      cubin_of("#include <cassert>\n__global__ void k(int* p) { assert(p[0] > 0); p[1] = 2; }");
  if (plain.empty()) GTEST_SKIP() << "no nvcc here";
  EXPECT_EQ(forbidden_symbol(plain).rule, "") << forbidden_symbol(plain).reason;
  EXPECT_FALSE(elf_symbols(plain).empty());
  EXPECT_EQ(forbidden_symbol(cubin_of("__global__ void k(void** p) { p[0] = malloc(16); }")).rule,
            "device-heap");
  EXPECT_EQ(forbidden_symbol(cubin_of("__global__ void k(int** p) { p[0] = new int[4]; }")).rule,
            "device-heap");
  EXPECT_EQ(forbidden_symbol(cubin_of("#include <cstdio>\n"
                                      "__global__ void k(int* p) { printf(\"%d\", p[0]); }"))
                .rule,
            "device-heap");
  EXPECT_EQ(forbidden_symbol(cubin_of("__global__ void c(int* p) { p[0] = 1; }\n"
                                      "__global__ void k(int* p) {\n"
                                      "  c<<<1, 1, 0, cudaStreamTailLaunch>>>(p);\n}",
                                      "-rdc=true"))
                .rule,
            "device-launch");
}

TEST(CudaSymbols, AnyBytesAreSafe) {
  EXPECT_TRUE(elf_symbols("").empty());
  EXPECT_TRUE(
      elf_symbols("not an ELF file, but long enough to have a header in it ........").empty());
  std::string damaged = cubin_of("__global__ void k(int* p) { p[1] = 2; }");
  for (std::size_t cut = 0; cut < damaged.size(); cut += 37) {
    elf_symbols(damaged.substr(0, cut));
    std::string flipped = damaged;
    flipped[cut] = static_cast<char>(flipped[cut] ^ 0x5a);
    elf_symbols(flipped);
  }
}

TEST(CudaProtocol, JudgeTensorsSurviveTheTrip) {
  Task task = task_of(100, 50);
  task.tensors[0].init = {Init::Kind::kUniform, -2, 3};
  task.precision = Precision::kTf32;
  for (const Policy policy : {Policy::kContract, Policy::kKernelBench}) {
    const auto sent = judge_tensors(task, task.cases[0], policy, false);
    const auto got = judge_tensors_from_json(judge_tensors_to_json(sent));
    ASSERT_TRUE(got);
    ASSERT_EQ(got->size(), 3u);
    EXPECT_EQ((*got)[0].draw.a, -2);
    EXPECT_EQ((*got)[0].draw.b, 5);
    EXPECT_EQ((*got)[0].draw.first, -2);
    EXPECT_EQ((*got)[0].draw.last, std::nextafter(3.0f, 0.0f));
    EXPECT_EQ((*got)[1].role, Role::kParameter);
    EXPECT_TRUE((*got)[2].output);
    EXPECT_EQ((*got)[2].rule.kind, rule_for(task, task.tensors[2], policy).kind);
    EXPECT_EQ((*got)[2].rule.tolerance, rule_for(task, task.tensors[2], policy).tolerance);
    EXPECT_EQ((*got)[2].rule.absolute, rule_for(task, task.tensors[2], policy).absolute);
    EXPECT_EQ((*got)[2].expected_bytes(), 200u);
    EXPECT_EQ(judge_tensors(task, task.cases[0], policy, true)[2].expected_bytes(), 400u);
  }
  EXPECT_FALSE(judge_tensors_from_json("[{\"dtype\":\"fp32\",\"role\":\"input\"}]"));
  EXPECT_FALSE(judge_tensors_from_json("{}"));
}

TEST(CudaProcesses, DifferByLessWhereCallsAreLong) {
  EXPECT_NEAR(process_spread(5), 0.045, 1e-9);
  EXPECT_NEAR(process_spread(60), 0.01, 1e-9);
  EXPECT_LT(process_spread(1000), 0.001);
  const Interval wide = widened({1.01, 1.02, 1.03}, 0.045);
  EXPECT_NEAR(wide.mid, 1.02, 1e-9);
  EXPECT_NEAR(std::log(wide.mid / wide.low), std::hypot(std::log(1.02 / 1.01), 0.045), 1e-9);
  EXPECT_NEAR(std::log(wide.high / wide.mid), std::hypot(std::log(1.03 / 1.02), 0.045), 1e-9);
}

TEST(CudaProcesses, OneKernelInBothShowsTheDifference) {
  const Interval ratio = corrected({1.018, 1.02, 1.022}, {1.019, 1.02, 1.021});
  EXPECT_NEAR(ratio.mid, 1, 1e-9);
  EXPECT_NEAR(ratio.low, 1 - std::hypot(0.002, 0.001) / 1.02, 1e-5);
  EXPECT_NEAR(ratio.high, 1 + std::hypot(0.002, 0.001) / 1.02, 1e-5);
  const Interval exact = corrected({2, 2, 2}, {1, 1, 1});
  EXPECT_EQ(exact.low, 2);
  EXPECT_EQ(exact.high, 2);
}

TEST(CudaAudit, ChanceOfSlowContents) {
  EXPECT_NEAR(slow_by_chance(4, 4, 0, 8), 1 / 495.0, 1e-9);  // of 12 contents, just these 4
  EXPECT_NEAR(slow_by_chance(0, 4, 3, 8), 1, 1e-9);
  EXPECT_NEAR(slow_by_chance(1, 1, 0, 4), 0.2, 1e-9);
  EXPECT_NEAR(slow_by_chance(2, 2, 1, 2), 0.5, 1e-9);  // 2 of 3 slow ones among 4
  EXPECT_EQ(slow_by_chance(8, 8, 4, 4), 1);            // all are slow: not conclusive
  // Slow in one call of three on usual values, and in all on others.
  const auto calls = [](int quick, int slow) {
    std::vector<double> us(static_cast<std::size_t>(quick), 10);
    us.insert(us.end(), static_cast<std::size_t>(slow), 30);
    return us;
  };
  EXPECT_TRUE(slower_beyond_chance(calls(40, 20), calls(0, 20), 1.25, 0.5));
  EXPECT_FALSE(slower_beyond_chance(calls(10, 5), calls(0, 5), 1.25, 0.5)) << "too few to tell";
  EXPECT_FALSE(slower_beyond_chance(calls(40, 20), calls(14, 6), 1.25, 0.5));
  EXPECT_FALSE(slower_beyond_chance({}, calls(0, 5), 1.25, 0.5));
}

}  // namespace
}  // namespace kernelpro
