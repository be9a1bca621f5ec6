// SPDX-License-Identifier: Apache-2.0
#include "profile/places/sites.h"

#include <gtest/gtest.h>

namespace kernelpro {
namespace {

constexpr const char* kSource = R"(#include <cuda_runtime.h>
// scale<<<1, 1>>>(x) in a comment is no launch
constexpr int kThreads = 128;
constexpr int kStages = 3;
__constant__ float table[256];
__device__ float soft(const float* row) {
  float local[8];
#pragma unroll
  for (int i = 0; i < 8; ++i) local[i] = row[i];
  return local[0];
}
template <int N>
__global__ void __launch_bounds__(kThreads, 8)
scale(const float* in, float* out,
      int n) {
  __shared__ float tile[kStages][128];
  for (int i = threadIdx.x; i < n; i += kThreads) {
    tile[0][i] = soft(in + i);
  }
  out[threadIdx.x] = tile[0][threadIdx.x] * table[n];
}
__global__ void other(float* p) { p[0] = 1; }
int main() {
  const dim3 block(kThreads), grid(32);
  other<<<1, 1>>>(nullptr);
  cudaMemcpy(a, b, 4, cudaMemcpyDefault);
  cudaDeviceSynchronize();
  scale<4><<<grid, block, 1024>>>(a, b, 3);
}
)";

std::vector<int> lines_of(const std::vector<SourceSite>& sites, SiteKind kind) {
  std::vector<int> found;
  for (const SourceSite& site : sites) {
    if (site.kind == kind) found.push_back(site.line.line);
  }
  return found;
}

using Lines = std::vector<int>;

TEST(Sites, OfAKernelItsFunctionsAndItsLaunch) {
  const auto sites = kernel_sites("a.cu", kSource, "scale");
  EXPECT_EQ(lines_of(sites, SiteKind::kKernel), Lines{14});
  EXPECT_EQ(lines_of(sites, SiteKind::kBounds), Lines{13});
  EXPECT_EQ(lines_of(sites, SiteKind::kPointers), Lines{14});
  EXPECT_EQ(lines_of(sites, SiteKind::kLaunch), Lines{28});
  EXPECT_EQ(lines_of(sites, SiteKind::kCopy), Lines{26});
  EXPECT_EQ(lines_of(sites, SiteKind::kSync), Lines{27});
  EXPECT_TRUE(lines_of(sites, SiteKind::kAllocate).empty());
  EXPECT_EQ(lines_of(sites, SiteKind::kGrid), Lines{24});
  EXPECT_EQ(lines_of(sites, SiteKind::kBlock), Lines{24});
  EXPECT_EQ(lines_of(sites, SiteKind::kSharedArray), Lines{16});
  EXPECT_EQ(lines_of(sites, SiteKind::kLocalArray), Lines{7});
  EXPECT_EQ(lines_of(sites, SiteKind::kConstant), Lines{5});
  EXPECT_EQ(lines_of(sites, SiteKind::kDepth), Lines{4});
  EXPECT_EQ(lines_of(sites, SiteKind::kUnroll), Lines{8});
  EXPECT_EQ(lines_of(sites, SiteKind::kLoop), (Lines{9, 17}));
}

// Warps with a task of their own are named; how many there are in all is no such thing.
TEST(Sites, HowManyWarpsHaveATaskOfTheirOwn) {
  const auto sites = kernel_sites("a.cu",
                                  "constexpr int kWarps = 8;\n"
                                  "constexpr int kFetchWarps = 6;\n"
                                  "constexpr int NUM_WARPS = 8;\n"
                                  "constexpr int EXPAND_WARPS = 1;\n"
                                  "constexpr int kWarpSize = 32, kWarpsN = 2;\n"
                                  "__global__ void scale(float* p) { p[kFetchWarps] = kWarps; }\n",
                                  "scale");
  EXPECT_EQ(lines_of(sites, SiteKind::kDepth), (Lines{2, 4}));
}

TEST(Sites, LoopsEndWithTheirBodies) {
  for (const SourceSite& site : kernel_sites("a.cu", kSource, "scale")) {
    if (site.kind == SiteKind::kLoop && site.line.line == 17) {
      EXPECT_EQ(site.last, 19);
    }
    if (site.kind == SiteKind::kBounds) {
      EXPECT_EQ(site.name, "registers");
    }
    EXPECT_EQ(site.line.file, "a.cu");
    EXPECT_FALSE(site.line.text.empty());
  }
}

TEST(Sites, AnotherKernelHasItsOwn) {
  const auto sites = kernel_sites("a.cu", kSource, "other");
  EXPECT_EQ(lines_of(sites, SiteKind::kKernel), Lines{22});
  EXPECT_EQ(lines_of(sites, SiteKind::kLaunch), Lines{25});
  EXPECT_TRUE(lines_of(sites, SiteKind::kLoop).empty());
  EXPECT_TRUE(lines_of(sites, SiteKind::kPointers).empty());  // one pointer overlaps nothing
  EXPECT_TRUE(kernel_sites("a.cu", kSource, "main").empty());
  EXPECT_TRUE(kernel_sites("a.cu", kSource, "").empty());
}

TEST(Sites, LaunchesByTheRuntime) {
  const auto sites = launch_sites("b.cu", R"(
void run() {
  cudaFuncSetAttribute(scale<4>, cudaFuncAttributeMaxDynamicSharedMemorySize, 4096);
  cudaLaunchConfig_t config{};
  config.gridDim = 4;
  cudaLaunchKernelEx(&config, scale<4>, a, b);
}
)",
                                  "scale");
  EXPECT_EQ(lines_of(sites, SiteKind::kLaunch), Lines{6});
  EXPECT_EQ(lines_of(sites, SiteKind::kGrid), Lines{5});
}

TEST(Sites, AnyTextIsSafe) {
  for (const char* text : {"", "scale", "__global__ void scale(", "__global__ void scale() {",
                           "scale<<<", "scale<<<(((", "\"scale", "/* scale", "R\"(scale",
                           "#define scale \\", "__global__ scale(){ for ( __shared__ [ ] "}) {
    kernel_sites("a.cu", text, "scale");
    launch_sites("a.cu", text, "scale");
  }
}

TEST(Sites, BaseNames) {
  EXPECT_EQ(kernel_base_name("scale(float*)"), "scale");
  EXPECT_EQ(kernel_base_name("void ns::scale<float, (int)4>(float const*, int)"), "scale");
  EXPECT_EQ(kernel_base_name("void (anonymous namespace)::scale<4>(float*)"), "scale");
  EXPECT_EQ(kernel_base_name("scale"), "scale");
  EXPECT_EQ(kernel_base_name(""), "");
}

}  // namespace
}  // namespace kernelpro
