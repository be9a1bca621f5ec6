// SPDX-License-Identifier: Apache-2.0
// Real kernels: recorded ones (fixtures/cpu), and some compiled and disassembled here by the local
// g++ and objdump.
#include "profile/code/hot_loops.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/files.h"
#include "base/process/subprocess.h"
#include "base/text.h"
#include "profile/code/disassemble.h"

namespace kernelpro {
namespace {

AsmMix mix_of(const std::string& source, const std::vector<std::string>& flags) {
  TempDir dir;
  const std::string so = join(dir.path(), "k.so");
  EXPECT_TRUE(write_file(join(dir.path(), "k.cpp"), source));
  Command compile;
  compile.argv = {"g++", "-std=c++20", "-shared", "-fPIC", join(dir.path(), "k.cpp"), "-o", so};
  compile.argv.insert(compile.argv.end(), flags.begin(), flags.end());
  const Result<Exit> exit = run(compile);
  EXPECT_TRUE(exit && exit->ok()) << (exit ? exit->output : exit.error().text());
  const Result<Disassembly> text = disassemble_host(so);
  EXPECT_TRUE(text) << (text ? "" : text.error().text());
  return text ? hot_mix(parse_objdump(text->text)) : AsmMix{};
}

const std::vector<std::string> kScalar = {"-O2", "-fno-tree-vectorize"};
const std::vector<std::string> kVector = {"-O3", "-march=x86-64-v3", "-ffast-math"};

constexpr const char* kScale = R"(
extern "C" void launch(const float* x, float* y, long n) {
  for (long i = 0; i < n; ++i) y[i] = x[i] * 3.0f + y[i];
})";

TEST(HotLoops, ScalarLoopReadsAsScalar) {
  const AsmMix mix = mix_of(kScale, kScalar);
  EXPECT_EQ(mix.packed_fp, 0);
  EXPECT_GE(mix.scalar_fp, 2);
  EXPECT_EQ(mix.vector_bits, 0);
  EXPECT_EQ(mix.loops, 1);
}

TEST(HotLoops, VectorisedLoopReadsAsPackedDespiteItsRemainder) {
  const AsmMix mix = mix_of(kScale, kVector);
  EXPECT_GE(mix.packed_fp, 1);
  EXPECT_EQ(mix.scalar_fp, 0) << mix.text;
  EXPECT_EQ(mix.vector_bits, 256);
  EXPECT_TRUE(contains(mix.text, "launch")) << mix.text;
}

TEST(HotLoops, HandWrittenVectorLoopWithScalarTail) {
  const AsmMix mix = mix_of(R"(
typedef float V __attribute__((vector_size(32)));
extern "C" void launch(const float* x, float* y, long n) {
  long i = 0;
  for (; i + 8 <= n; i += 8) {
    V v; __builtin_memcpy(&v, x + i, 32);
    v = v * v + 1.0f;
    __builtin_memcpy(y + i, &v, 32);
  }
  for (; i < n; ++i) y[i] = x[i] * x[i] + 1.0f;
})",
                            {"-O2", "-fno-tree-vectorize", "-march=x86-64-v3"});
  EXPECT_GE(mix.packed_fp, 1);
  EXPECT_EQ(mix.scalar_fp, 0) << mix.text;
}

TEST(HotLoops, AVectorisedPrologueDoesNotHideAScalarMainLoop) {
  const AsmMix mix = mix_of(R"(
extern "C" void launch(const float* a, const float* b, float* c, long n) {
  for (long i = 0; i < n * n; ++i) c[i] = c[i] * 0.5f;
  for (long i = 0; i < n; ++i)
    for (long j = 0; j < n; ++j) {
      float s = 0;
      for (long k = 0; k < n; ++k) s += a[i * n + k] * b[k * n + j];
      c[i * n + j] += s;
    }
})",
                            {"-O3", "-march=x86-64-v3"});  // strict order: the sum stays scalar
  EXPECT_GT(mix.scalar_fp, 0);
  EXPECT_GT(mix.scalar_fp, mix.packed_fp) << mix.text;
}

TEST(HotLoops, DeepScalarEdgesDoNotHideAPackedMainLoop) {
  const AsmMix mix = mix_of(R"(
typedef float V __attribute__((vector_size(32)));
static void tile(const float* a, const float* b, float* c, long n) {
  V s[4][2] = {};
  for (long k = 0; k < n; ++k)
    for (int i = 0; i < 4; ++i)
      for (int j = 0; j < 2; ++j) {
        V v; __builtin_memcpy(&v, b + k * n + 8 * j, 32);
        s[i][j] += v * a[i * n + k];
      }
  for (int i = 0; i < 4; ++i) __builtin_memcpy(c + i * n, s[i], 64);
}
static __attribute__((noinline)) void edge(const float* a, const float* b, float* c, long n,
                                           long rows, long columns) {
  for (long i = 0; i < rows; ++i)
    for (long j = 0; j < columns; ++j)
      for (long k = 0; k < n; ++k) c[i * n + j] += a[i * n + k] * b[k * n + j];
}
extern "C" void launch(const float* a, const float* b, float* c, long n) {
  for (long i = 0; i < n; i += 4)
    for (long j = 0; j < n; j += 16)
      if (i + 4 <= n && j + 16 <= n) tile(a + i * n, b + j, c + i * n + j, n);
      else edge(a + i * n, b + j, c + i * n + j, n, n - i < 4 ? n - i : 4, n - j < 16 ? n - j : 16);
})",
                            {"-O3", "-march=x86-64-v3", "-fno-tree-vectorize"});
  EXPECT_GE(mix.packed_fp, 8) << mix.text;
  EXPECT_LT(mix.scalar_fp, mix.packed_fp) << mix.text;
}

// Lanes are combined by halves, through the stack, after a short row: the loop over the lanes is
// longer than the one over the row.
constexpr const char* kLanes = R"(
constexpr int W = 16;
typedef float V __attribute__((vector_size(64), aligned(4)));
extern "C" void launch(const float* x, float* y, long rows, long columns) {
  for (long r = 0; r < rows; ++r) {
    V largest = *(const V*)(x + r * columns);
    for (long i = W; i < columns; i += W) {
      const V v = *(const V*)(x + r * columns + i);
      largest = largest > v ? largest : v;
      *(V*)(y + r * columns + i) = v * 0.5f + largest;
    }
    float lanes[W];
    __builtin_memcpy(lanes, &largest, 4 * W);
    for (int half = W / 2; half > 0; half /= 2)
      for (int i = 0; i < half; ++i) {
        const float a = lanes[i], b = lanes[i + half];
        lanes[i] = a > b ? a : b;
      }
    y[r * columns] = lanes[0];
  }
})";

TEST(HotLoops, LanesThatArePutTogetherAreNotTheMainLoop) {
  const AsmMix mix = mix_of(kLanes, {"-O3", "-march=x86-64-v4", "-fno-tree-vectorize"});
  EXPECT_GE(mix.packed_fp, 2) << mix.text;
  EXPECT_EQ(mix.scalar_fp, 0) << mix.text;
  EXPECT_EQ(mix.vector_bits, 512) << mix.text;
}

// With nothing else there, the code that works on the stack is the kernel.
TEST(HotLoops, ALoopOverTheStackAloneIsTheMainLoop) {
  const AsmMix mix = mix_of(R"(
extern "C" void launch(const float* x, float* y) {
  float state[64];
  __builtin_memcpy(state, x, sizeof state);
  for (int step = 0; step < 1000; ++step)
    for (int i = 1; i < 64; ++i) state[i] = state[i - 1] * 0.5f + state[i] * 0.25f;
  __builtin_memcpy(y, state, sizeof state);
})",
                            {"-O3", "-march=x86-64-v3"});
  EXPECT_GE(mix.scalar_fp, 2) << mix.text;
  EXPECT_EQ(mix.loops, 1) << mix.text;
}

TEST(HotLoops, LooksIntoOpenMpFunctionsAndSeesCalls) {
  const AsmMix mix = mix_of(R"(
#include <cmath>
extern "C" void launch(const float* x, float* y, long rows, long n) {
#pragma omp parallel for
  for (long r = 0; r < rows; ++r) {
    float s = 0;
    for (long i = 0; i < n; ++i) s += y[r * n + i] = std::exp(x[r * n + i]);
    for (long i = 0; i < n; ++i) y[r * n + i] /= s;
  }
})",
                            {"-O3", "-fopenmp", "-fno-tree-vectorize"});
  EXPECT_TRUE(contains(mix.text, "launch._omp_fn")) << mix.text;
  EXPECT_GE(mix.calls, 1);
  EXPECT_GE(mix.scalar_fp, 1);
  EXPECT_EQ(mix.packed_fp, 0);
}

TEST(HotLoops, LooksIntoGlobalFunctionsBehindThePlt) {
  const AsmMix mix = mix_of(R"(
__attribute__((noinline)) void row(const float* x, float* y, long n) {
  for (long i = 0; i < n; ++i) y[i] = x[i] * 3.0f + 1.0f;
}
extern "C" void launch(const float* x, float* y, long rows, long n) {
  for (long r = 0; r < rows; ++r) row(x + r * n, y + r * n, n);
})",
                            kScalar);
  EXPECT_GE(mix.scalar_fp, 2) << mix.text;
}

TEST(HotLoops, LooksIntoFunctionsOfThreads) {
  const AsmMix mix = mix_of(R"(
#include <thread>
extern "C" void launch(const float* x, float* y, long n) {
  std::thread t([=] { for (long i = 0; i < n; ++i) y[i] = x[i] * 2.0f + 1.0f; });
  t.join();
})",
                            {"-O3", "-march=x86-64-v3", "-pthread"});
  EXPECT_GE(mix.packed_fp, 1) << mix.text;
}

TEST(HotLoops, SeesStreamingStores) {
  const AsmMix mix = mix_of(R"(
#include <immintrin.h>
extern "C" void launch(const float* x, float* y, long n) {
  for (long i = 0; i < n; i += 8)
    _mm256_stream_ps(y + i, _mm256_mul_ps(_mm256_loadu_ps(x + i), _mm256_set1_ps(2)));
})",
                            {"-O2", "-march=x86-64-v3"});
  EXPECT_GE(mix.streaming_stores, 1);
  EXPECT_GE(mix.packed_fp, 1);
}

TEST(HotLoops, CodeWithoutLoopsIsCountedWhole) {
  const AsmMix mix = mix_of(
      "extern \"C\" void launch(const float* x, float* y) { y[0] = x[0] * x[1] + x[2]; }", kScalar);
  EXPECT_EQ(mix.loops, 0);
  EXPECT_EQ(mix.scalar_fp, 2);
}

TEST(HotLoops, NonsenseGivesNothing) {
  EXPECT_EQ(hot_mix(parse_objdump("")).instructions, 0);
  EXPECT_EQ(hot_mix(parse_objdump("0000 <:\n <>:\n1:\n  :\tadd\n zz:\tadd eax\n")).instructions, 0);
}

// Each kernel's second line states the kind of its main loop.
class Recorded : public ::testing::TestWithParam<std::string> {};

const std::string kRecordings = std::string(KERNELPRO_SOURCE_DIR) + "/src/profile/fixtures/cpu";

std::vector<std::string> recordings() {
  std::vector<std::string> names;
  for (const std::string& name : list_dir(kRecordings)) {
    if (name.ends_with(".cpp")) names.push_back(name.substr(0, name.size() - 4));
  }
  return names;
}

TEST_P(Recorded, ScalarWorkIsThatOfTheMainLoop) {
  const Result<std::string> source = read_file(join(kRecordings, GetParam() + ".cpp"));
  const Result<std::string> text = read_file(join(kRecordings, GetParam() + ".objdump.txt"));
  ASSERT_TRUE(source && text) << "run src/profile/fixtures/cpu/record " << GetParam() << ".cpp";
  const AsmMix mix = hot_mix(parse_objdump(*text));
  SCOPED_TRACE(mix.text);
  if (contains(*source, "// main loop: scalar\n")) {
    EXPECT_GE(mix.scalar_share, 0.6);
    EXPECT_GT(mix.scalar_fp, mix.packed_fp);
    EXPECT_FALSE(mix.packed_version);
  } else if (contains(*source, "// main loop: packed\n")) {
    EXPECT_LT(mix.scalar_share, 0.4);
    EXPECT_GT(mix.packed_fp, mix.scalar_fp);
    EXPECT_GE(mix.vector_bits, 256);
  } else if (contains(*source, "// main loop: packed integers\n")) {
    EXPECT_LT(mix.scalar_share, 0.4);
  } else {
    ASSERT_TRUE(contains(*source, "// main loop: no arithmetic\n"));
    EXPECT_EQ(mix.packed_fp + mix.scalar_fp, 0);
    EXPECT_EQ(mix.scalar_share, 0);
    EXPECT_EQ(mix.loops, 1);
  }
}

INSTANTIATE_TEST_SUITE_P(Cpu, Recorded, ::testing::ValuesIn(recordings()), [](const auto& each) {
  std::string name = each.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

// The loops are independent: an argument selects which one runs, and the scalar one also does
// something else.
TEST(HotLoops, AScalarLoopThatAPackedOneCouldReplaceIsNamedAsDoubtful) {
  const AsmMix mix = mix_of(R"(
typedef float V __attribute__((vector_size(32), aligned(4)));
extern "C" void launch(const float* x, float* y, long n, long m) {
  for (long i = 0; i < n; i += 8) *(V*)(y + i) = *(const V*)(x + i) * 3.0f + 1.0f;
  for (long i = 0; i < m; ++i)
    for (long j = 0; j < n; ++j) y[j] = y[j] * 3.0f + x[i];
})",
                            {"-O2", "-march=x86-64-v3", "-fno-tree-vectorize"});
  EXPECT_GE(mix.scalar_share, 0.5) << mix.text;
  EXPECT_TRUE(mix.packed_version) << mix.text;
}

}  // namespace
}  // namespace kernelpro
