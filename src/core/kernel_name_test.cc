// SPDX-License-Identifier: Apache-2.0
#include "core/kernel_name.h"

#include <gtest/gtest.h>

namespace kernelpro {
namespace {

TEST(KernelName, Demangles) {
  EXPECT_EQ(demangled("_Z4axpyIfEvPT_PKS0_S0_i"),
            "void axpy<float>(float*, float const*, float, int)");
  EXPECT_EQ(demangled("softmax_kernel"), "softmax_kernel");
  EXPECT_EQ(demangled("_Znonsense"), "_Znonsense");
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
