// SPDX-License-Identifier: Apache-2.0
#include "machine/cpu.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <thread>

namespace kernelpro {
namespace {

TEST(Cpu, DescribesThisMachine) {
  const CpuInfo info = read_cpu_info();
  EXPECT_FALSE(info.name.empty());
  EXPECT_FALSE(info.arch.empty());
  EXPECT_GE(info.threads, 1);
  EXPECT_LE(info.threads, ::sysconf(_SC_NPROCESSORS_CONF));
}

TEST(Cpu, NamesItsVectorInstructions) {
  EXPECT_EQ(instruction_sets_of("fpu sse4_2 avx f16c fma avx2 avx512f avx512_vnni"),
            "SSE4.2, AVX, F16C, FMA, AVX2, AVX-512 F, AVX-512 VNNI");
  EXPECT_EQ(instruction_sets_of("fp asimd sve bf16"), "NEON, SVE, BF16");
  EXPECT_EQ(instruction_sets_of("avx20 xfma"), "");
  EXPECT_EQ(instruction_sets_of(""), "");
}

TEST(Cpu, CountsOnlyTheThreadsThatWeMayUse) {
  int threads = 0;
  std::thread([&] {  // the mask applies to one thread
    cpu_set_t mask;
    ::sched_getaffinity(0, sizeof mask, &mask);
    int first = 0;
    while (!CPU_ISSET(first, &mask)) ++first;
    CPU_ZERO(&mask);
    CPU_SET(first, &mask);
    ASSERT_EQ(::sched_setaffinity(0, sizeof mask, &mask), 0);
    threads = read_cpu_info().threads;
  })
      .join();
  EXPECT_EQ(threads, 1);
}

TEST(Cpu, KnowsItsMemory) {
  const std::int64_t bytes = available_memory_bytes();
  EXPECT_GT(bytes, 1 << 20);
  EXPECT_LE(bytes, static_cast<std::int64_t>(::sysconf(_SC_PHYS_PAGES)) * ::sysconf(_SC_PAGESIZE));
}

TEST(Cpu, LeavesMemoryBesideAModule) {
  constexpr std::int64_t kGb = 1LL << 30;
  EXPECT_EQ(module_memory_limit(100 * kGb), 50 * kGb);
  EXPECT_EQ(module_memory_limit(6 * kGb), 4 * kGb);
  EXPECT_LT(module_memory_limit(2 * kGb), 2 * kGb);
}

}  // namespace
}  // namespace kernelpro
