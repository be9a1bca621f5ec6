// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <vector>

#include "base/files.h"
#include "measure/ceilings/ceilings.h"

namespace kernelpro {
namespace {

TEST(CpuMachine, MeasuresItsCeilingsOnce) {
  const TempDir cache;
  ASSERT_EQ(::setenv("KERNELPRO_CACHE", cache.path().c_str(), 1), 0);
  const Result<Machine> machine = describe_cpu_machine();
  ASSERT_TRUE(machine) << machine.error().text();
  EXPECT_EQ(machine->target, "cpu");
  EXPECT_GT(machine->ceilings.copy_bytes_per_s, 1e8);
  EXPECT_GT(machine->ceilings.fma_flops_per_s, 1e9);
  EXPECT_FALSE(machine->ceilings.how.empty());
  const Result<Machine> again = describe_cpu_machine();
  ASSERT_TRUE(again);
  // No two measurements agree to the last digit: equal values show that it was not remeasured.
  EXPECT_EQ(again->ceilings.copy_bytes_per_s, machine->ceilings.copy_bytes_per_s);
  EXPECT_EQ(again->ceilings.fma_flops_per_s, machine->ceilings.fma_flops_per_s);
  EXPECT_GE(machine->ceilings.rounds, 1);
  EXPECT_FALSE(machine->ceilings.measured_at.empty());
  const Result<Machine> asked = describe_cpu_machine(CeilingsWanted::kAgain);
  ASSERT_TRUE(asked);
  EXPECT_GT(asked->ceilings.rounds, machine->ceilings.rounds);
  EXPECT_GE(asked->ceilings.copy_bytes_per_s, machine->ceilings.copy_bytes_per_s);
  EXPECT_GE(asked->ceilings.fma_flops_per_s, machine->ceilings.fma_flops_per_s);
  ::unsetenv("KERNELPRO_CACHE");
  std::printf("%s: %.3g byte/s, %.3g flop/s (%s)\n", machine->name.c_str(),
              machine->ceilings.copy_bytes_per_s, machine->ceilings.fma_flops_per_s,
              (machine->ceilings.how + "; " + ceilings_basis(machine->ceilings)).c_str());
}

// Windows of half a millisecond find the processors free even with four busy loops. This checks
// the order of magnitude: a measurement with long windows gets a third or less.
TEST(CpuMachine, LoadHardlyLowersTheCeilings) {
  const TempDir cache;
  ASSERT_EQ(::setenv("KERNELPRO_CACHE", cache.path().c_str(), 1), 0);
  const Result<Machine> before = describe_cpu_machine();
  ASSERT_TRUE(before) << before.error().text();
  ASSERT_EQ(::setenv("KERNELPRO_CACHE", join(cache.path(), "loaded").c_str(), 1), 0);
  std::vector<pid_t> busy;
  for (int i = 0; i < 4; ++i) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      for (volatile int n = 0;;) n = n + 1;
    }
    busy.push_back(pid);
  }
  const Result<Machine> beside = describe_cpu_machine();
  for (const pid_t pid : busy) {
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
  }
  ::unsetenv("KERNELPRO_CACHE");
  ASSERT_TRUE(beside) << beside.error().text();
  EXPECT_FALSE(beside->ceilings.quiet);
  EXPECT_GT(beside->ceilings.copy_bytes_per_s, 0.5 * before->ceilings.copy_bytes_per_s);
  EXPECT_GT(beside->ceilings.fma_flops_per_s, 0.5 * before->ceilings.fma_flops_per_s);
  std::printf("with four busy loops: copy %.3f, FMA %.3f of what was measured before\n",
              beside->ceilings.copy_bytes_per_s / before->ceilings.copy_bytes_per_s,
              beside->ceilings.fma_flops_per_s / before->ceilings.fma_flops_per_s);
}

}  // namespace
}  // namespace kernelpro
