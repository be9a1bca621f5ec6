// SPDX-License-Identifier: Apache-2.0
#if KERNELPRO_HAVE_CUDA

#include "measure/worker/cuda/nvrtc.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "base/files.h"
#include "measure/worker/cuda/kernels.h"

namespace kernelpro {
namespace {

// NVRTC needs no GPU: the judge's kernels must compile for every supported architecture.
TEST(TrustedKernels, CompileForEveryArchitecture) {
  const Result<std::string> version = nvrtc_version();
  if (!version) GTEST_SKIP() << version.error().text();
  const TempDir cache;
  ::setenv("KERNELPRO_CACHE", cache.path().c_str(), 1);
  for (const char* arch : {"sm_80", "sm_90a", "sm_100a", "sm_120a"}) {
    const Result<std::string> cubin = trusted_cubin(TrustedKernels::source(), arch);
    ASSERT_TRUE(cubin) << arch << ": " << cubin.error().text();
    EXPECT_GT(cubin->size(), 1000u);
    const Result<std::string> again = trusted_cubin(TrustedKernels::source(), arch);
    ASSERT_TRUE(again);
    EXPECT_EQ(*cubin, *again) << "the cache gives something else";
  }
}

}  // namespace
}  // namespace kernelpro

#endif
