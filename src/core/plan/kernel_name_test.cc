// SPDX-License-Identifier: Apache-2.0
#include "core/plan/kernel_name.h"

#include <gtest/gtest.h>

namespace kernelpro {
namespace {

TEST(KernelName, Demangles) {
  EXPECT_EQ(demangled("_Z4axpyIfEvPT_PKS0_S0_i"),
            "void axpy<float>(float*, float const*, float, int)");
  EXPECT_EQ(demangled("softmax_kernel"), "softmax_kernel");
  EXPECT_EQ(demangled("_Znonsense"), "_Znonsense");
}

// Each argument of a template is the one before, twice.
std::string doubling(int levels) {
  std::string open = "_Z4axpyI", close;
  const std::string digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
  for (int level = 0; level < levels; ++level) open += level == 0 ? "3TwoI" : "S0_I";
  for (int level = 1; level < levels; ++level) {
    const std::size_t n = static_cast<std::size_t>(level);
    close += "S" + (n >= 36 ? digits.substr(n / 36, 1) : "") + digits.substr(n % 36, 1) + "_E";
  }
  return open + "iiE" + close + "EvPf";
}

TEST(KernelName, ThatDoublesIsNotSpelledOut) {
  EXPECT_EQ(demangled(doubling(2)).rfind("void axpy<Two<Two<int, int>, Two<int, int> > >(", 0), 0u)
      << demangled(doubling(2));
  for (const int levels : {24, 27, 60, 100}) {
    EXPECT_EQ(demangled(doubling(levels)), doubling(levels)) << levels;
    EXPECT_LE(short_kernel_name(doubling(levels)).size(), 40u);
  }
  // Packs of packs, pointers to functions, and names that are merely long.
  std::string pack = "_Z1fIJ";
  for (int i = 0; i < 300; ++i) pack += "PFvRT_RT0_E";
  EXPECT_LE(demangled(pack + "EEvv").size(), 32u * 1024);
  EXPECT_LE(demangled("_Z1f" + std::string(100'000, 'P') + "i").size(), 100'010u);
}

TEST(KernelName, IsShortInSentences) {
  EXPECT_EQ(short_kernel_name("void axpy<float, 4>(float *, int)"), "axpy<float, 4>");
  EXPECT_EQ(short_kernel_name("_Z4axpyIfEvPT_PKS0_S0_i"), "axpy<float>");
  EXPECT_EQ(short_kernel_name("at::native::(anonymous namespace)::fold<int>(int)"), "fold<int>");
  EXPECT_EQ(short_kernel_name("(anonymous namespace)::k(int)"), "k");
  EXPECT_EQ(short_kernel_name(""), "");
}

TEST(KernelName, FitsIntoItsWidth) {
  const std::string torch =
      "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, "
      "std::array<char*, 1ul>>(int, at::native::FillFunctor<float>, std::array<char*, 1ul>)";
  for (std::size_t width = 8; width < 80; ++width) {
    EXPECT_LE(short_kernel_name(torch, width).size(), width) << width;
  }
  EXPECT_EQ(short_kernel_name(torch).rfind("vectorized_elementwise_kernel<4", 0), 0u);
}

}  // namespace
}  // namespace kernelpro
