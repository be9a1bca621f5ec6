// SPDX-License-Identifier: Apache-2.0
#include "diagnose/account/make_account.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "core/evidence/metrics.h"
#include "core/finding/account_json.h"
#include "diagnose/account/gains.h"

namespace kernelpro {
namespace {

double sum(const std::vector<AccountPart>& parts) {
  double all = 0;
  for (const AccountPart& part : parts) {
    EXPECT_GT(part.us, 0) << part_words(part);
    EXPECT_EQ(part.kind == PartKind::kWait, part.stall.has_value());
    all += part.us;
  }
  return all;
}

void expect_exact(const Account& account, double measured_us) {
  EXPECT_NEAR(account.us, measured_us, kAccountQuantum);
  EXPECT_EQ(sum(account.parts), account.us);
  double kernels = 0;
  for (const KernelAccount& kernel : account.kernels) {
    EXPECT_EQ(sum(kernel.parts), kernel.us);
    kernels += kernel.us;
    for (const CostlyPlace& place : kernel.places) {
      EXPECT_GE(place.us, 0);
      EXPECT_LE(place.us, kernel.us);
      EXPECT_GE(place.gain, 1);
    }
  }
  EXPECT_LE(kernels, account.part(PartKind::kKernels));
}

// Through its text, so that printed numbers are read back too.
Account read_again(const Account& account) {
  return read_account(parse_json(dump_json(account_json(account))).value());
}

Places random_places(std::mt19937* random) {
  std::uniform_real_distribution<double> unit(0, 1);
  Places places;
  if (unit(*random) < 0.5) places.basis = Places::Basis::kEstimated;
  for (int i = 0; i < kStalls; ++i) {
    const double share = unit(*random) / kStalls;
    const auto stall = static_cast<Stall>(i);
    places.stalls.push_back({stall, share, share * unit(*random)});
    Place place;
    place.at = {{"kernel.cu", i, "x"}, 16 * i, "FADD"};
    place.stall = stall;
    place.share = share;
    place.exposed = places.stalls.back().exposed;
    places.places.push_back(place);
  }
  return places;
}

// Every metric may be there or not, with values over many orders of magnitude.
TEST(Account, AddsUpExactlyWhateverTheEvidence) {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> unit(0, 1);
  for (int round = 0; round < 2000; ++round) {
    Evidence evidence;
    const double keep = unit(random);
    const bool cpu = unit(random) < 0.2;
    const auto fill = [&](Evidence* into) {
      for (const Metric& metric : metrics()) {
        const bool host = metric.family == Family::kProcessor || metric.family == Family::kHostCode;
        if ((host && !cpu) || unit(random) > keep) continue;
        into->set(std::string(metric.name), std::pow(10, 14 * unit(random) - 3), "test");
      }
      if (unit(random) < 0.5) into->places = random_places(&random);
    };
    fill(&evidence);
    const double us = std::pow(10, 7 * unit(random));
    evidence.set("timing.median", us, "test");
    if (evidence.get("load.foreign_cpu")) evidence.set("load.foreign_cpu", unit(random), "test");
    const int kernels = static_cast<int>(4 * unit(random));
    for (int i = 0; i < kernels; ++i) {
      KernelEvidence kernel{"k" + std::to_string(i), {}};
      fill(&kernel.facts);
      kernel.facts.set("kernel.share", unit(random), "test");
      evidence.kernels.push_back(std::move(kernel));
    }
    const Account account = make_account(evidence, roofline(evidence));
    SCOPED_TRACE(round);
    expect_exact(account, us);
    const Account again = read_again(account);
    expect_exact(again, us);
    EXPECT_EQ(account_json(again), account_json(account));
    if (HasFailure()) return;
  }
}

// Of a PyTorch module: each operator beside what it needs by itself.
TEST(Account, HasTheOperatorsOfAModule) {
  Evidence e;
  e.set("timing.median", 100, "test");
  e.set("plan.kernels", 2, "test");
  e.set("ceiling.copy_bandwidth", 4e12, "test");
  e.set("ceiling.fma_rate", 5e13, "test");
  OperatorCall product, relu, view;
  product.name = "addmm", product.where = "fc1 (Linear)", product.kind = OperatorKind::kProduct;
  product.read_bytes = 4e6, product.written_bytes = 4e6, product.flops = 1e9, product.us = 90;
  relu.name = "relu", relu.kind = OperatorKind::kPointwise;
  relu.read_bytes = 4e6, relu.written_bytes = 400e6, relu.us = 30;
  view.name = "unmeasured";
  e.operators = {relu, view, product};
  for (const char* name : {"gemm", "relu"}) {
    KernelEvidence kernel{name, {}};
    const bool first = e.kernels.empty();
    kernel.facts.set("kernel.share", first ? 0.75 : 0.25, "test");
    kernel.facts.set("gpu__time_duration.sum", first ? 90e3 : 30e3, "test");
    kernel.facts.texts["operator"] = first ? "`addmm` (fc1)" : "`relu`";
    e.kernels.push_back(std::move(kernel));
  }
  const Account account = make_account(e, roofline(e));
  expect_exact(account, 100);
  ASSERT_EQ(account.operators.size(), 2u);
  EXPECT_EQ(account.operators[0].name, "addmm");
  EXPECT_NEAR(account.operators[0].us, 75, 1e-3) << "profiled one by one they took 120 us";
  EXPECT_NEAR(account.operators[0].floor_us, 20, 1e-9) << "its products";
  EXPECT_EQ(account.operators[1].floor_us, account.operators[1].us) << "101 us by its bytes";
  ASSERT_EQ(account.kernels.size(), 2u);
  EXPECT_EQ(account.kernels[1].launched_by, "`relu`");
  const std::string text = account_to_text(account, false);
  EXPECT_NE(text.find("`gemm` of `addmm` (fc1) (75 %)"), std::string::npos) << text;
  EXPECT_NE(text.find("`addmm` (fc1) 75 % (20 %), `relu` 25 % (25 %)"), std::string::npos) << text;
  EXPECT_EQ(account_json(read_again(account)), account_json(account));
  const auto stored = evidence_from_json(evidence_to_json(e));
  ASSERT_TRUE(stored);
  EXPECT_EQ(evidence_to_json(*stored), evidence_to_json(e));
}

Evidence gather(double us) {
  Evidence e;
  e.set("timing.median", us, "test");
  e.set("gpu__time_duration.sum", 1e3 * (us - 4), "test");
  e.set("plan.kernels", 1, "test");
  e.set("task.compulsory_bytes", 4e8, "test");
  e.set("ceiling.copy_bandwidth", 4e12, "test");
  e.set("sm__cycles_active.avg", 90, "test");
  e.set("sm__cycles_active.max", 98, "test");
  e.set("gpc__cycles_elapsed.max", 100, "test");
  Places places;
  places.stalls = {
      {Stall::kLongScoreboard, 0.7, 0.6}, {Stall::kBarrier, 0.2, 0.2}, {Stall::kSelected, 0.1, 0}};
  Place place;
  place.at = {{"kernel.cu", 41, "sum += x[i];"}, 640, "FADD"};
  place.stall = Stall::kLongScoreboard;
  place.share = place.exposed = 0.5;
  place.producers = {{{{"kernel.cu", 39, "int i = index[j];"}, 320, "LDG.E"}, 0.8}};
  places.places = {place};
  e.places = places;
  return e;
}

TEST(Account, TheFloorCoversTheWaitsOfItsOwnKindFirst) {
  const Evidence e = gather(204);
  const Account account = make_account(e, roofline(e));
  expect_exact(account, 204);
  EXPECT_NEAR(account.part(PartKind::kLaunch), 4, 1e-4);
  ASSERT_EQ(account.kernels.size(), 1u);
  const KernelAccount& kernel = account.kernels[0];
  EXPECT_NEAR(kernel.part(PartKind::kFloor), 100, 1e-4);
  EXPECT_NEAR(kernel.part(PartKind::kRamp), 4, 1e-4);
  EXPECT_NEAR(kernel.part(PartKind::kWaves), 16, 1e-4);
  // Active: 180. Memory waits 108, of which the floor covers 100.
  EXPECT_NEAR(kernel.wait(Stall::kLongScoreboard), 8, 1e-3);
  EXPECT_NEAR(kernel.wait(Stall::kBarrier), 36, 1e-3);
  EXPECT_NEAR(kernel.part(PartKind::kIssue), 36, 1e-3);
  EXPECT_LT(kernel.part(PartKind::kUnknown), 1e-3);
  ASSERT_EQ(kernel.places.size(), 1u);
  EXPECT_NEAR(kernel.places[0].us, 8 * 0.5 / 0.6, 1e-3);
  EXPECT_EQ(kernel.places[0].because->line.line, 39);
  EXPECT_EQ(account.level(), Level::kCounters);
}

TEST(Account, ARampIsNotTheDifferenceOfTwoPasses) {
  Evidence e = gather(204);
  e.set("sm__cycles_active.avg", 63, "test");
  e.set("sm__cycles_active.max", 70, "test");
  const Account account = make_account(e, roofline(e));
  expect_exact(account, 204);
  const KernelAccount& kernel = account.kernels[0];
  EXPECT_NEAR(kernel.part(PartKind::kRamp), 5, 1e-4);
  EXPECT_NEAR(kernel.part(PartKind::kWaves), 19.5, 1e-4);
  e.set("kernel.launches", 4, "test");
  EXPECT_NEAR(make_account(e, roofline(e)).kernels[0].part(PartKind::kRamp), 20, 1e-4);
}

// A product and a pass over its results: the arithmetic is the product's, and so is its floor.
TEST(Account, EachKernelHasItsPartOfTheArithmeticsFloor) {
  for (const bool counted : {true, false}) {
    Evidence e;
    e.set("timing.median", 1000, "test");
    e.set("plan.kernels", 2, "test");
    e.set("task.compulsory_bytes", 4e8, "test");
    e.set("task.flops", 4e11, "test");
    e.set("task.matmul_flops", 4e11, "test");
    e.set("ceiling.copy_bandwidth", 4e12, "test");
    e.set("task.half_inputs", 1, "test");
    e.set("ceiling.tensor_rate", 8e14, "test");
    e.set("ceiling.fma_rate", 6e13, "test");
    for (const char* name : {"product", "pass"}) {
      const bool product = name == std::string("product");
      KernelEvidence kernel;
      kernel.name = name;
      kernel.facts.set("kernel.share", product ? 0.7 : 0.3, "test");
      kernel.facts.set("gpu__time_duration.sum", product ? 7e5 : 3e5, "test");
      if (counted) {
        kernel.facts.set("sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed",
                         product ? 70 : 0, "test");
      }
      e.kernels.push_back(std::move(kernel));
    }
    const Roofline roof = roofline(e);
    ASSERT_EQ(roof.theory, Bound::kCompute);
    const Account account = make_account(e, roof);
    ASSERT_EQ(account.kernels.size(), 2u);
    EXPECT_NEAR(account.kernels[0].part(PartKind::kFloor), counted ? roof.floor_us : 0, 1e-3);
    EXPECT_EQ(account.kernels[1].part(PartKind::kFloor), 0);
  }
}

// Minimal filtering: the definition's products would take longer than the call. Those that are
// computed keep the matrix units busy, and that time is no wait that could go.
TEST(Account, AWayWithFewerProductsHasTheFloorOfItsOwn) {
  Evidence e = gather(204);
  e.set("task.flops", 4e11, "test");
  e.set("task.matmul_flops", 4e11, "test");
  e.set("task.half_inputs", 1, "test");
  e.set("ceiling.tensor_rate", 8e14, "test");
  e.set("ceiling.fma_rate", 6e13, "test");
  e.set("sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed", 68, "test");
  const Roofline roof = roofline(e);
  ASSERT_TRUE(roof.less_work);
  const Account account = make_account(e, roof);
  expect_exact(account, 204);
  const KernelAccount& kernel = account.kernels[0];
  EXPECT_NEAR(kernel.part(PartKind::kFloor), 0.68 / 0.85 * 200, 1e-3);
  EXPECT_FALSE(kernel.memory_bound);
  e.set("sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed", 17, "test");
  EXPECT_NEAR(make_account(e, roof).kernels[0].part(PartKind::kFloor), 100, 1e-3)
      << "its bytes take longer";
}

TEST(Account, TextIsShortAndNamesThePlace) {
  const Evidence e = gather(204);
  const std::string text = account_to_text(make_account(e, roofline(e)), false);
  EXPECT_LE(std::count(text.begin(), text.end(), '\n'), 12) << text;
  EXPECT_NE(text.find("kernel.cu:41 `sum += x[i];`"), std::string::npos) << text;
  EXPECT_NE(text.find("because of kernel.cu:39"), std::string::npos) << text;
  EXPECT_NE(text.find("98 % kernels, 2 % launch latency"), std::string::npos) << text;
  EXPECT_EQ(account_to_text(make_account(e, roofline(e)), true).find("kernel.cu"),
            std::string::npos);
}

TEST(Account, WithoutATimeThereIsNone) {
  EXPECT_FALSE(make_account(Evidence(), {}).known());
  EXPECT_EQ(account_to_text(Account(), false), "");
}

TEST(Account, TheProcessorsPartsAddUp) {
  Evidence e;
  e.set("timing.median", 1000, "test");
  e.set("task.compulsory_bytes", 1e6, "test");
  e.set("ceiling.copy_bandwidth", 1e10, "test");
  e.set("machine.parallel_units", 2, "test");
  e.set("cpu.threads_busy", 1, "test");
  const Account account = make_account(e, roofline(e));
  expect_exact(account, 1000);
  EXPECT_TRUE(account.kernels.empty());
  EXPECT_NEAR(account.part(PartKind::kFloor), 100, 1e-4);
  EXPECT_NEAR(account.part(PartKind::kSingleThread), 500, 1e-4);
  EXPECT_NEAR(account.part(PartKind::kUnknown), 400, 1e-3);
}

TEST(Gains, AreCounterfactuals) {
  KernelAccount kernel;
  kernel.us = 100;
  kernel.warp_issuing = 0.1;
  kernel.memory_bound = true;
  kernel.parts = {{PartKind::kFloor, {}, 40, Level::kTiming, ""},
                  {PartKind::kTraffic, {}, 20, Level::kCounters, ""},
                  {PartKind::kWaves, {}, 20, Level::kCounters, ""},
                  {PartKind::kIssue, {}, 20, Level::kCounters, ""}};
  EXPECT_DOUBLE_EQ(gain_eliminating(kernel, 50), 2);
  EXPECT_NEAR(gain_of_warps(kernel, 1, 2), 1.9, 1e-9);
  EXPECT_DOUBLE_EQ(gain_of_warps(kernel, 1, 64), 2.5) << "never below the floor";
  EXPECT_DOUBLE_EQ(gain_of_warps(kernel, 4, 2), 1);
}

}  // namespace
}  // namespace kernelpro
