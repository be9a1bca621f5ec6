// SPDX-License-Identifier: Apache-2.0
#include "profile/code/parallel_regions.h"

#include <gtest/gtest.h>

namespace kernelpro {
namespace {

TEST(ParallelRegions, AreSeenInTheDisassembly) {
  const auto code = parse_objdump(
      "x.so:     file format elf64-x86-64\n\nDisassembly of section .text:\n\n"
      "0000000000001100 <launch>:\n"
      "    1100:\tlea    rdi,[rip+0x10]        # 1120 <launch._omp_fn.0>\n"
      "    1107:\tcall   1040 <GOMP_parallel@plt>\n"
      "    110c:\tret\n");
  EXPECT_EQ(parallel_regions(code), 1);
}

TEST(ParallelRegions, SerialCodeHasNone) {
  const auto code = parse_objdump(
      "x.so:     file format elf64-x86-64\n\nDisassembly of section .text:\n\n"
      "0000000000001100 <launch>:\n"
      "    1100:\tcall   1040 <expf@plt>\n"
      "    1105:\tret\n");
  EXPECT_EQ(parallel_regions(code), 0);
}

}  // namespace
}  // namespace kernelpro
