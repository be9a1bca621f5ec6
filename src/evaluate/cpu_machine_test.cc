// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdlib>

#include "base/files.h"
#include "evaluate/evaluator.h"

namespace kernelpro {
namespace {

TEST(CpuMachine, MeasuresItsCeilingsOnceADay) {
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
  // No two measurements agree to the last digit: it was not measured again.
  EXPECT_EQ(again->ceilings.copy_bytes_per_s, machine->ceilings.copy_bytes_per_s);
  EXPECT_EQ(again->ceilings.fma_flops_per_s, machine->ceilings.fma_flops_per_s);
  ::unsetenv("KERNELPRO_CACHE");
  std::printf("%s: %.3g byte/s, %.3g flop/s (%s)\n", machine->name.c_str(),
              machine->ceilings.copy_bytes_per_s, machine->ceilings.fma_flops_per_s,
              machine->ceilings.how.c_str());
}

}  // namespace
}  // namespace kernelpro
