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

TEST(KernelName, IsTheSameHoweverItIsSpelled) {
  const auto same = [](const char* a, const char* b) {
    EXPECT_EQ(kernel_key(a), kernel_key(b)) << a << " and " << b;
  };
  same("_Z6roundsILb0EEvPf", "void rounds<(bool)0>(float *)");
  same("_Z6roundsILb1EEvPf", "void rounds<true>(float *)");
  same("_Z4tileILi4ELj8ELl16EEvPf", "void tile<(int)4, (unsigned int)8, (long)16>(float *)");
  same("_Z4tileILin4EEvPf", "tile<(int)-4>(float *)");
  same("_Z4axpyIPKfSt4pairIhhEEvT_",
       "void axpy<const float *, std::pair<unsigned char, unsigned char>>(T1)");
  same("_ZN12_GLOBAL__N_14foldINS_3AddEEEvPf", "void <unnamed>::fold<<unnamed>::Add>(float *)");
  same("_ZN2at6native4foldIL4Mode2EEEvPf", "void at::native::fold<(Mode)2>(float *)");
  same("softmax_kernel", "softmax_kernel(const float *, float *)");
  same("", "");
  EXPECT_NE(kernel_key("_Z6roundsILb0EEvPf"), kernel_key("_Z6roundsILb1EEvPf"));
  EXPECT_NE(kernel_key("tile<4>(float*)"), kernel_key("tile<8>(float*)"));
  EXPECT_NE(kernel_key("_Z1kILf40490fdbEEvv"), kernel_key("_Z1kILf40490fdcEEvv"));
  same("pick<(Mode<(int)2>)3>(float*)", "pick<3>(float *)");
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
