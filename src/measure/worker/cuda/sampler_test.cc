// SPDX-License-Identifier: Apache-2.0
// The role cuda-sampler, from its supervisor's end of the channel, over a fake driver and a fake
// CUPTI (testing/fake_sampling.h).
#include "measure/worker/cuda/sampler_session.h"

#if KERNELPRO_HAVE_CUPTI

#include <cmath>
#include <memory>
#include <optional>

#include "measure/worker/roles.h"
#include "measure/worker/testing/fake_gpu.h"
#include "measure/worker/testing/fake_sampling.h"
#include "measure/worker/testing/role.h"

namespace kernelpro::testing {
namespace {

constexpr std::uint64_t kElements = 500;

TEST(SamplingPeriod, GivesAQuarterOfAMillionSamplesAtMost) {
  constexpr int kUnits = 132;
  EXPECT_EQ(sampling_period(0.25e-3 * 1.755e9, kUnits), 8);
  EXPECT_EQ(sampling_period(1e3, kUnits), 8) << "never shorter";
  EXPECT_EQ(sampling_period(0, 0), 8);
  for (double cycles = 5e5; cycles < 1e12; cycles *= 1.7) {
    const double samples = cycles * kUnits / std::ldexp(1.0, sampling_period(cycles, kUnits));
    EXPECT_LE(samples, 250e3) << cycles;
    EXPECT_GE(samples, 50e3) << cycles;
  }
  EXPECT_EQ(sampling_period(1e300, kUnits), 31);
}

struct Samplers : FakeContext {
  Samplers() : FakeContext(Needs::kJudgeKernels) {}
  void SetUp() override {
    FakeContext::SetUp();
    if (IsSkipped()) return;
    judge.open(cu(), 64u << 20);
    fake::define("first", {{8, 8}, nullptr, 250});
    fake::define("second", {{8, 8}, nullptr, 50});
    fake::define("wild", {{}, [](fake::Launch& launch) { launch.bytes_at(64, 4); }});
    fake::define("poison", {{8, 8, 8}});
    fake::define("flush_cache", {{8, 8, 8}});
    cubin = join(folder.path(), "k.cubin");
    ASSERT_TRUE(write_file(cubin, fake::image({"first", "second", "wild"})));
    fake::sampling_calls();
    role = std::make_unique<RoleThread>(cuda_sampler);
    const Json opened = role->ask({{"do", "open"},
                                   {"cases", Json::array({{{"case", "toy"},
                                                           {"layout", json_of(layout)},
                                                           {"sets", 1},
                                                           {"inputs", {true, false, false}}}})}});
    ASSERT_TRUE(ok(opened)) << opened;
    std::vector<Fd> fds;
    std::vector<int> numbers;
    for (std::size_t slot = 0; slot < layout.slots.size(); ++slot) {
      fds.push_back(judge.share());
      numbers.push_back(fds.back().get());
    }
    const Json given =
        role->ask({{"do", "memory"}, {"case", "toy"}, {"set", 0}, {"slots", {0, 1, 2}}}, numbers);
    ASSERT_TRUE(ok(given)) << given;
  }
  void TearDown() override {
    const int status = role ? role->end() : 0;
    EXPECT_EQ(status, 0);
    role.reset();
    judge.close();
    FakeContext::TearDown();
  }
  void load(const LaunchPlan& plan) {
    const Json loaded = role->ask({{"do", "load"},
                                   {"case", "toy"},
                                   {"subject", "candidate"},
                                   {"cubin", cubin},
                                   {"plan", json_of(plan)}});
    ASSERT_TRUE(ok(loaded)) << loaded;
  }
  Json sample() {
    return role->ask({{"do", "sample"}, {"case", "toy"}, {"subject", "candidate"}, {"set", 0}});
  }
  static std::optional<SampleAnswers> answers_of(const Json& answer) {
    EXPECT_TRUE(ok(answer)) << answer;
    return sample_answers_from_json(dump_json(JsonReader(answer).object("answers")));
  }
  static LaunchPlan plan() {
    return in_a_row({kernel("first", {tensor(0), tensor(1)}),
                     kernel("second", {tensor(1), workspace()}),
                     kernel("first", {tensor(0), tensor(1)})});
  }

  const TempDir folder;
  std::string cubin;
  const AddressLayout layout = toy_layout(kElements, 64);
  JudgeMemory judge;
  std::unique_ptr<RoleThread> role;
};

using Lines = std::vector<std::string>;

TEST_F(Samplers, SampleACallOnce) {
  load(plan());
  fake::clear_log();
  const auto answers = answers_of(sample());
  ASSERT_TRUE(answers);
  EXPECT_EQ(fake::sampling_calls(), (Lines{"Enable", "Configure", "Start", "Stop", "Disable"}));
  EXPECT_EQ(answers->source, "cupti");
  EXPECT_EQ(answers->dropped, 3);
  EXPECT_TRUE(answers->missing.empty());
  // 0.55 ms on four multiprocessors need no long period.
  EXPECT_EQ(answers->period_cycles, 256);
  EXPECT_EQ(fake::sampled_period(), 8);
  ASSERT_EQ(answers->kernels.size(), 2u);
  const KernelSamples& first = answers->kernels[0];
  EXPECT_EQ(first.function, "first");
  ASSERT_EQ(first.pcs.size(), 2u);
  EXPECT_EQ(first.pcs[0].offset, 0);
  EXPECT_EQ(first.pcs[1].offset, 32);
  EXPECT_EQ(answers->kernels[1].function, "second");
  // In the call's order, with L2 emptied before the sampled call.
  Lines kernels;
  for (const fake::Launch& launch : fake::launches()) kernels.push_back(launch.kernel);
  EXPECT_EQ(kernels, (Lines{"poison", "first", "second", "first", "poison", "first", "second",
                            "first", "poison", "flush_cache", "first", "second", "first"}));
}

TEST_F(Samplers, ExposedSamplesArePartOfAll) {
  load(in_a_row({kernel("second", {tensor(0), tensor(1)})}));
  const auto answers = answers_of(sample());
  ASSERT_TRUE(answers);
  ASSERT_EQ(answers->kernels.size(), 1u);
  const auto& pcs = answers->kernels[0].pcs;
  ASSERT_EQ(pcs.size(), 2u);
  ASSERT_EQ(pcs[0].stalls.size(), 1u);
  EXPECT_EQ(pcs[0].stalls[0].stall, Stall::kSelected);
  EXPECT_EQ(pcs[0].stalls[0].all, 8);
  EXPECT_EQ(pcs[0].stalls[0].exposed, 0);
  ASSERT_EQ(pcs[1].stalls.size(), 1u) << "a reason of a later GPU";
  EXPECT_EQ(pcs[1].stalls[0].stall, Stall::kLongScoreboard);
  EXPECT_EQ(pcs[1].stalls[0].all, 64);
  EXPECT_EQ(pcs[1].stalls[0].exposed, 48);
}

TEST_F(Samplers, LaunchesOfAKernelAddUp) {
  load(plan());
  const auto answers = answers_of(sample());
  ASSERT_TRUE(answers);
  ASSERT_EQ(answers->kernels.size(), 2u);
  ASSERT_EQ(answers->kernels[0].pcs[1].stalls.size(), 1u);
  EXPECT_EQ(answers->kernels[0].pcs[1].stalls[0].all, 128);
  EXPECT_EQ(answers->kernels[1].pcs[1].stalls[0].all, 64);
}

TEST_F(Samplers, ALongCallHasALongPeriod) {
  fake::define("first", {{8, 8}, nullptr, 3e6});
  load(in_a_row({kernel("first", {tensor(0), tensor(1)})}));
  const auto answers = answers_of(sample());
  ASSERT_TRUE(answers);
  EXPECT_EQ(answers->period_cycles, 1 << 17) << "3 s, four multiprocessors";
}

TEST_F(Samplers, WhatDidNotFitIsMissing) {
  load(plan());
  fake::leave_program_counters(7);
  const auto answers = answers_of(sample());
  fake::leave_program_counters(0);
  ASSERT_TRUE(answers);
  EXPECT_EQ(answers->kernels.size(), 2u);
  ASSERT_EQ(answers->missing.size(), 1u);
  EXPECT_EQ(answers->missing[0].family, Family::kSamples);
  EXPECT_FALSE(answers->missing[0].part.empty());
}

// A captured PyTorch call: kernels of two libraries, memory of its own, and a table in it.
TEST_F(Samplers, SampleACapturedCall) {
  std::vector<float> tables;  // what each call found
  fake::define("second", {{8, 8},
                          [&](fake::Launch& launch) {
                            float* table = launch.memory<float>(1, 1);
                            if (table == nullptr) return;
                            tables.push_back(*table);
                            *table = -1;
                          },
                          50});
  const std::string other = join(folder.path(), "other.cubin"),
                    table = join(folder.path(), "table.bin");
  ASSERT_TRUE(write_file(other, fake::image({"second"})));
  const float value = 7;
  ASSERT_TRUE(write_file(table, std::string(reinterpret_cast<const char*>(&value), 4)));
  const auto captured = [](std::uint64_t address) {
    PlanParameter parameter;
    parameter.bytes.assign(reinterpret_cast<const char*>(&address), sizeof address);
    return parameter;
  };
  LaunchPlan plan =
      in_a_row({kernel("first", {tensor(0), tensor(1)}),
                kernel("second", {tensor(1), captured(kCandidateBase + kScratchOffset + 512)})});
  plan.nodes[1].image = 1;
  plan.scratch_bytes = 1024;
  plan.constants = {{512, 4, table}};
  const auto load_with = [&](const Json& images) {
    return role->ask({{"do", "load"},
                      {"case", "toy"},
                      {"subject", "candidate"},
                      {"images", images},
                      {"plan", json_of(plan)}});
  };
  EXPECT_EQ(rule(load_with({cubin})), "plan") << "an image is missing";
  ASSERT_TRUE(ok(load_with({cubin, other})));
  const std::string before = fake::alive();
  const auto answers = answers_of(sample());
  ASSERT_TRUE(answers);
  EXPECT_EQ(answers->kernels.size(), 2u);
  EXPECT_EQ(tables, std::vector<float>(3, value)) << "restored before each call";
  EXPECT_EQ(fake::alive(), before) << "memory that the next evaluation may need";
  EXPECT_TRUE(answers_of(sample()));
  EXPECT_EQ(tables.size(), 6u);
}

TEST_F(Samplers, RefusalsHaveARemedyAndLeaveNothingBehind) {
  load(plan());
  for (const char* call : {"Enable", "Configure", "Start", "Stop"}) {
    fake::sampling_calls();
    fake::refuse_sampling(call, CUPTI_ERROR_INSUFFICIENT_PRIVILEGES);
    const Json answer = sample();
    EXPECT_EQ(rule(answer), "unavailable") << answer;
    EXPECT_TRUE(contains(error(answer), "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES")) << answer;
    EXPECT_TRUE(contains(JsonReader(answer).text("next"), "NVreg_RestrictProfilingToAdminUsers=0"));
    const Lines calls = fake::sampling_calls();
    EXPECT_EQ(calls.empty() ? "" : calls.back(), call == std::string("Enable") ? "" : "Disable");
  }
  fake::refuse_sampling("Enable", CUPTI_ERROR_HARDWARE_BUSY);
  EXPECT_EQ(rule(sample()), "busy");
  EXPECT_TRUE(ok(sample())) << "free again";
}

TEST_F(Samplers, AFaultIsNoRefusal) {
  load(in_a_row({kernel("wild", {})}));
  const Json answer = sample();
  EXPECT_FALSE(ok(answer));
  EXPECT_EQ(rule(answer), "none") << answer;
}

TEST_F(Samplers, UnknownSubjectsAndVerbs) {
  EXPECT_FALSE(ok(sample()));
  EXPECT_FALSE(ok(role->ask({{"do", "dance"}})));
  EXPECT_TRUE(ok(role->ask({{"do", "hello"}})));
}

}  // namespace
}  // namespace kernelpro::testing

#endif
