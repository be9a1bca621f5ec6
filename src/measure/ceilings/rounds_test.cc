// SPDX-License-Identifier: Apache-2.0
// Which ceiling measurements are kept, and when they are repeated. Nothing is timed.
#include "measure/ceilings/rounds.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <vector>

#include "base/files.h"
#include "measure/ceilings/ceilings.h"

namespace kernelpro {
namespace {

constexpr const char* kToday = "2026-11-22T09:00:00Z";

struct Fake {
  std::vector<CeilingRound> rounds;  // the last repeats
  int measured = 0;

  Fake& round(double copy, double fma, double foreign) {
    CeilingRound r;
    r.machine.target = "cpu";
    r.machine.ceilings.copy_bytes_per_s = copy;
    r.machine.ceilings.fma_flops_per_s = fma;
    r.foreign = foreign;
    r.quiet = foreign < 0.05;
    rounds.push_back(r);
    return *this;
  }
  MeasureRound function() {
    return [this]() -> Result<CeilingRound> {
      const auto at = static_cast<std::size_t>(measured++);
      return rounds[std::min(at, rounds.size() - 1)];
    };
  }
  Result<Machine> described(const std::string& path, CeilingsWanted wanted,
                            const std::string& now = kToday) {
    return described_machine(
        path, wanted, [this]() -> Result<MeasureRound> { return function(); }, now);
  }
};

// A report's GPU is found by its name, whatever the files are called; other targets' are not.
TEST(RememberedMachine, IsTheLatestOfItsNameAndTarget) {
  const TempDir cache;
  ASSERT_EQ(::setenv("KERNELPRO_CACHE", cache.path().c_str(), 1), 0);
  const auto remember = [](TargetKind target, const char* key, const char* name, double copy) {
    Fake fake;
    fake.round(copy, 200e9, 0);
    fake.rounds[0].machine.name = name;
    EXPECT_TRUE(fake.described(ceilings_file(target, key), CeilingsWanted::kAgain));
  };
  remember(TargetKind::kCuda, "a", "NVIDIA H100", 3e12);
  remember(TargetKind::kCuda, "b", "NVIDIA H200", 4e12);
  remember(TargetKind::kCpu, "c", "NVIDIA H200", 1e10);
  const auto found = remembered_machine(TargetKind::kCuda, "NVIDIA H200");
  const auto other = remembered_machine(TargetKind::kCuda, "NVIDIA H100");
  const auto none = remembered_machine(TargetKind::kCuda, "NVIDIA A100");
  ::unsetenv("KERNELPRO_CACHE");
  ASSERT_TRUE(found && other);
  EXPECT_EQ(found->ceilings.copy_bytes_per_s, 4e12);
  EXPECT_EQ(other->ceilings.copy_bytes_per_s, 3e12);
  EXPECT_FALSE(none);
}

TEST(CeilingRounds, TwoQuietOnesThatAgreeAreEnough) {
  Fake fake;
  fake.round(80e9, 200e9, 0).round(81e9, 201e9, 0.01);
  const auto machine = best_of_rounds(fake.function(), RoundsPlan());
  ASSERT_TRUE(machine);
  EXPECT_EQ(fake.measured, 2);
  EXPECT_EQ(machine->ceilings.copy_bytes_per_s, 81e9);
  EXPECT_TRUE(machine->ceilings.quiet);
  EXPECT_EQ(machine->ceilings.rounds, 2);
}

TEST(CeilingRounds, GoOnUntilTwoAgree) {
  Fake fake;
  fake.round(40e9, 200e9, 0).round(70e9, 200e9, 0).round(80e9, 150e9, 0).round(80e9, 199e9, 0);
  const auto machine = best_of_rounds(fake.function(), RoundsPlan());
  ASSERT_TRUE(machine);
  EXPECT_EQ(fake.measured, 4);
  EXPECT_EQ(machine->ceilings.copy_bytes_per_s, 80e9);
  EXPECT_EQ(machine->ceilings.fma_flops_per_s, 200e9);
}

TEST(CeilingRounds, AgreementUnderLoadIsNone) {
  Fake fake;
  fake.round(40e9, 100e9, 0.6).round(40e9, 100e9, 0.6).round(41e9, 101e9, 0.6);
  const RoundsPlan plan;
  const auto machine = best_of_rounds(fake.function(), plan);
  ASSERT_TRUE(machine);
  EXPECT_EQ(fake.measured, plan.most_busy);
  EXPECT_EQ(machine->ceilings.copy_bytes_per_s, 41e9);
  EXPECT_FALSE(machine->ceilings.quiet);
  EXPECT_NEAR(machine->ceilings.foreign, 0.6, 1e-9);
}

TEST(CeilingRounds, NoAgreementEndsToo) {
  Fake fake;
  for (int i = 0; i < 20; ++i) fake.round((40 + 10 * i) * 1e9, 200e9, 0);
  ASSERT_TRUE(best_of_rounds(fake.function(), RoundsPlan()));
  EXPECT_EQ(fake.measured, RoundsPlan().most_quiet);
}

TEST(DescribedMachine, QuietCeilingsAreKeptForTheDay) {
  const TempDir dir;
  const std::string path = join(dir.path(), "machine.json");
  Fake fake;
  fake.round(80e9, 200e9, 0);
  ASSERT_TRUE(fake.described(path, CeilingsWanted::kAny));
  ASSERT_TRUE(fake.described(path, CeilingsWanted::kAny));
  EXPECT_EQ(fake.measured, 2);  // both from the first time
  EXPECT_TRUE(still_good(machine_from_json(*read_file(path, 1 << 20))->ceilings, kToday));
  EXPECT_FALSE(
      still_good(machine_from_json(*read_file(path, 1 << 20))->ceilings, "2026-11-23T00:00:01Z"));
}

TEST(DescribedMachine, CeilingsOfABusyMachineAreMeasuredAgainMinutesLater) {
  const TempDir dir;
  const std::string path = join(dir.path(), "machine.json");
  Fake busy;
  busy.round(40e9, 210e9, 0.6);
  const auto first = busy.described(path, CeilingsWanted::kAny);
  ASSERT_TRUE(first);
  EXPECT_FALSE(first->ceilings.quiet);
  EXPECT_TRUE(still_good(first->ceilings, "2026-11-22T09:04:59Z"));
  EXPECT_FALSE(still_good(first->ceilings, "2026-11-22T09:05:00Z"));
  EXPECT_FALSE(still_good(first->ceilings, "2026-11-22T08:59:59Z")) << "the clock was set back";
  EXPECT_FALSE(still_good(first->ceilings, "today"));
  const int so_far = busy.measured;
  ASSERT_TRUE(busy.described(path, CeilingsWanted::kAny));
  EXPECT_EQ(busy.measured, so_far) << "the same command asks again";
  // Stands for the next command: another path, so this process has no results for it.
  const std::string next = join(dir.path(), "next.json");
  ASSERT_TRUE(write_file(next, *read_file(path, 1 << 20)));
  Fake quiet;
  quiet.round(80e9, 200e9, 0);
  ASSERT_TRUE(quiet.described(next, CeilingsWanted::kAny));
  EXPECT_EQ(quiet.measured, 0) << "seconds later";
  const auto again = quiet.described(next, CeilingsWanted::kAny, "2026-11-22T09:06:00Z");
  ASSERT_TRUE(again);
  EXPECT_GT(quiet.measured, 0);
  EXPECT_TRUE(again->ceilings.quiet);
  EXPECT_EQ(again->ceilings.copy_bytes_per_s, 80e9);
  EXPECT_EQ(again->ceilings.fma_flops_per_s, 210e9) << "the best that was seen stays";
}

TEST(DescribedMachine, AskedToItMeasuresAgainAndKeepsTheBest) {
  const TempDir dir;
  const std::string path = join(dir.path(), "machine.json");
  Fake fake;
  fake.round(80e9, 200e9, 0).round(80e9, 200e9, 0).round(90e9, 150e9, 0.6);
  ASSERT_TRUE(fake.described(path, CeilingsWanted::kAny));
  const auto again = fake.described(path, CeilingsWanted::kAgain);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->ceilings.copy_bytes_per_s, 90e9);
  EXPECT_EQ(again->ceilings.fma_flops_per_s, 200e9);
  EXPECT_TRUE(again->ceilings.quiet);
  EXPECT_EQ(fake.measured, 2 + kImprovePlan.most_busy) << "a known machine is not waited for";
}

}  // namespace
}  // namespace kernelpro
