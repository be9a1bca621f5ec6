// SPDX-License-Identifier: Apache-2.0
#include "write/tuner/found_knobs.h"

#include <gtest/gtest.h>

#include "base/text.h"
#include "core/candidate/knobs.h"

namespace kernelpro {
namespace {

std::optional<FoundKnobs> found(const std::string& source, Language language = Language::kCpp,
                                const KnobSite& site = {}) {
  Candidate candidate;
  candidate.language = language;
  candidate.source = source;
  return find_knobs(candidate, site);
}

std::vector<std::string> values(const FoundKnobs& found, const std::string& name) {
  const auto knobs = parse_knobs(found.source);
  EXPECT_TRUE(knobs) << knobs.error().text();
  for (const Knob& knob : *knobs) {
    if (knob.name == name) return knob.values;
  }
  ADD_FAILURE() << "no knob " << name << " in\n" << found.source;
  return {};
}

using Values = std::vector<std::string>;

TEST(FoundKnobs, InnerLoopsThreadsAndSums) {
  KnobSite site;
  site.processors = 4;
  const auto some = found(
      "#include \"task.h\"\n"
      "extern \"C\" void launch(const Args& args) {\n"
      "#pragma omp parallel for  // rows\n"
      "  for (int r = 0; r < ROWS; ++r) {\n"
      "    float sum = 0;\n"
      "    for (int c = 0; c < COLS; ++c) sum += args.x[r * COLS + c];\n"
      "    args.y[r] = sum;\n"
      "  }\n"
      "}\n",
      Language::kCpp, site);
  ASSERT_TRUE(some);
  EXPECT_EQ(values(*some, "UNROLL"), (Values{"0", "2", "4", "8", "16"}));
  EXPECT_EQ(values(*some, "THREADS"), (Values{"2", "4", "8"}));
  EXPECT_EQ(some->values.at("THREADS"), "4");
  EXPECT_EQ(some->values.at("SCHEDULE"), "static");
  EXPECT_EQ(some->values.at("REORDER"), "0");
  EXPECT_TRUE(
      contains(some->source, "parallel for schedule(SCHEDULE) num_threads(THREADS)  // rows"))
      << some->source;
  EXPECT_TRUE(contains(some->source, "#pragma GCC unroll kUnrollBy\n#endif\n    for (int c"))
      << "only the inner loop\n"
      << some->source;
}

TEST(FoundKnobs, NamedTilesKeepTheirValue) {
  const auto some = found(
      "#include \"task.h\"\n"
      "constexpr int kTileRows = 32;\nstatic const std::size_t BK = 6;\n#define CHUNK 128\n"
      "const int kHidden = 64;\nconstexpr float kTileScale = 4;\n"
      "extern \"C\" void launch(const Args& args);\n");
  ASSERT_TRUE(some);
  EXPECT_EQ(values(*some, "TILE_ROWS"), (Values{"8", "16", "32", "64", "128"}));
  EXPECT_EQ(values(*some, "BK_KNOB"), (Values{"1", "3", "6", "12", "24"}));
  EXPECT_EQ(values(*some, "CHUNK"), (Values{"32", "64", "128", "256", "512"}));
  EXPECT_EQ(some->values.size(), 3u) << "neither 64 nor a float is a tile";
  EXPECT_TRUE(contains(some->source, "kTileRows = TILE_ROWS;"));
  EXPECT_FALSE(contains(some->source, "#define CHUNK"));
  // What a compiler sees with the original's values is the original.
  EXPECT_TRUE(contains(apply_knobs(some->source, some->values), "#define CHUNK 128\n"));
}

TEST(FoundKnobs, BlocksAtLaunchesGoWithTheirNumbers) {
  const std::string source =
      "#include \"task.h\"\n"
      "__global__ void add(const float* x, float* y) {\n"
      "  __shared__ float part[256];\n"
      "  const int i = blockIdx.x * 256 + threadIdx.x;\n"
      "  if (i < N) part[threadIdx.x] = x[i];\n"
      "  for (int k = 128; k > 0; k /= 2) part[threadIdx.x] += part[(threadIdx.x + k) % 256];\n"
      "  y[i] = part[0];\n"
      "}\n"
      "extern \"C\" void launch(const Args& args, cudaStream_t stream) {\n"
      "  add<<<(N + 255) / 256, 256, 0, stream>>>(args.x, args.y);\n"
      "}\n";
  const auto some = found(source, Language::kCuda);
  ASSERT_TRUE(some);
  EXPECT_EQ(values(*some, "BLOCK"), (Values{"64", "128", "256", "512", "1024"}));
  EXPECT_TRUE(contains(some->source, "<<<(N + (BLOCK - 1)) / BLOCK, BLOCK, 0, stream>>>"));
  EXPECT_TRUE(contains(some->source, "part[BLOCK]"));
  EXPECT_TRUE(contains(some->source, "k = (BLOCK / 2); k > 0; k /= 2"));
  KnobSite site;
  site.sizes = {256};
  EXPECT_FALSE(found(source, Language::kCuda, site)->values.contains("BLOCK"))
      << "256 may be the problem's";
}

TEST(FoundKnobs, SquareBlocksStayWithinABlocksThreads) {
  const auto some = found(
      "__global__ void mm(float* c) { __shared__ float a[16][16]; c[threadIdx.y * 16] = a[0][0]; "
      "}\n"
      "void launch(const Args& args, cudaStream_t stream) {\n"
      "  dim3 block(16, 16);\n"
      "  mm<<<dim3(N / 16, N / 16), block, 0, stream>>>(args.c);\n}\n",
      Language::kCuda);
  ASSERT_TRUE(some);
  EXPECT_EQ(values(*some, "BLOCK"), (Values{"8", "16", "32"}));
  EXPECT_TRUE(contains(some->source, "a[BLOCK][BLOCK]"));
}

TEST(FoundKnobs, AWarpIsNoBlock) {
  const auto some = found(
      "#define WARPS_PER_BLOCK 4\n__global__ void k(float* y) { y[threadIdx.x % 32] = 0; }\n"
      "void launch(const Args& args, cudaStream_t stream) {\n"
      "  k<<<N / WARPS_PER_BLOCK, 32 * WARPS_PER_BLOCK, 0, stream>>>(args.y);\n"
      "  k<<<N, 32, 0, stream>>>(args.y);\n}\n",
      Language::kCuda);
  ASSERT_TRUE(some);
  EXPECT_EQ(values(*some, "WARPS_PER_BLOCK"), (Values{"1", "2", "4", "8", "16"}));
  EXPECT_EQ(some->values.size(), 1u) << some->source;
}

TEST(FoundKnobs, PlanFormAndGivenUnrolling) {
  const auto some = found(
      "#include \"task.h\"\n"
      "__global__ void k(float* y) {\n"
      "#pragma unroll 4\n"
      "  for (int i = 0; i < 64; ++i) y[i] = 0;\n"
      "#pragma unroll\n"
      "  for (int i = 0; i < 3; ++i) y[i] = 1;\n"
      "}\n"
      "KP_LAUNCH(k, kp::dim(64, 2), kp::dim(128), 0, arg::y)\n",
      Language::kCuda);
  ASSERT_TRUE(some);
  EXPECT_EQ(values(*some, "UNROLL"), (Values{"1", "2", "4", "8", "16"}));
  EXPECT_EQ(some->values.at("UNROLL"), "4");
  EXPECT_EQ(some->values.at("BLOCK"), "128");
  EXPECT_TRUE(contains(some->source, "kp::dim(64, 2), kp::dim(BLOCK)"));
  EXPECT_TRUE(contains(some->source, "#pragma unroll\n  for (int i = 0; i < 3")) << some->source;
}

TEST(FoundKnobs, NamesThatAreTakenStay) {
  KnobSite site;
  site.reserved = {"UNROLL_KNOB"};
  const auto some = found(
      "#include \"task.h\"\nint UNROLL;\nvoid launch(const Args& args) {\n"
      "  for (int i = 0; i < N; ++i) args.y[i] = 0;\n}\n",
      Language::kCpp, site);
  ASSERT_TRUE(some);
  EXPECT_TRUE(some->values.contains("UNROLL_KNOB3")) << some->source;
}

TEST(FoundKnobs, NothingWhereThereIsNothing) {
  EXPECT_FALSE(found(""));
  EXPECT_FALSE(found("void launch(const Args& args) {}\n"));
  EXPECT_FALSE(found("// @knob V 1 2\nvoid launch() { for (;;) {} }\n")) << "it has its own";
  EXPECT_FALSE(found("for (", Language::kCuda));
  EXPECT_FALSE(found("k<<<dim3(16, 16", Language::kCuda));
  EXPECT_FALSE(found("def f(x):\n  for i in x: pass\n", Language::kPython));
}

}  // namespace
}  // namespace kernelpro
