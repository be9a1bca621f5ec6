// SPDX-License-Identifier: Apache-2.0
// The logs that people and models see when a source does not compile, from real compilers.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <thread>

#include "base/clock.h"
#include "base/files.h"
#include "base/process/worker_path.h"
#include "base/text.h"
#include "build/compiler.h"

namespace kernelpro {
namespace {

struct Failure {
  const char* name;
  const char* source;  // after #include "task.h"
  std::vector<std::string> shown;
  std::vector<std::string> hidden = {};
};

class FailuresTest : public ::testing::Test {
 protected:
  void SetUp() override {
    settings_.cache_dir = dir_.path();
    settings_.timeout_s = 60;
    settings_.cuda_arch = "sm_90a";
    task_.name = "t";
    task_.tensors = {{"x", Role::kInput, DType::kFp32, {"N"}, {}, 0},
                     {"y", Role::kOutput, DType::kFp32, {"N"}, {}, 0}};
    task_.cases = {{"c", {{"N", 1024}}, true, {}}};
  }

  std::string log_of(Compiler& compiler, const std::string& source) {
    const Language language = is_cpu_ ? Language::kCpp : Language::kCuda;
    const CompileResult built = compiler.compile(
        task_, task_.cases[0], {language, "#include \"task.h\"\n" + source, {}, {}});
    if (!built) return "Error: " + built.error().text();
    const auto* error = std::get_if<CompileError>(&*built);
    return error != nullptr ? error->log : "it compiled";
  }

  void check(Compiler& compiler, const std::vector<Failure>& failures) {
    // Two at a time: compilers are thread-safe.
    std::vector<std::string> logs(failures.size());
    std::atomic<std::size_t> next{0};
    const auto work = [&] {
      for (std::size_t i = next++; i < failures.size(); i = next++) {
        logs[i] = log_of(compiler, failures[i].source);
      }
    };
    std::thread second(work);
    work();
    second.join();
    for (std::size_t i = 0; i < failures.size(); ++i) {
      const Failure& f = failures[i];
      const std::string& log = logs[i];
      for (const std::string& text : f.shown) {
        EXPECT_TRUE(contains(log, text)) << f.name << " lacks [" << text << "]:\n" << log;
      }
      for (const std::string& text : f.hidden) {
        EXPECT_FALSE(contains(log, text)) << f.name << " shows [" << text << "]:\n" << log;
      }
      EXPECT_FALSE(contains(log, dir_.path())) << f.name << ":\n" << log;
      EXPECT_LT(log.size(), 4500u) << f.name;
      EXPECT_LT(lines(log).size(), 60u) << f.name << ":\n" << log;
    }
  }

  // A file that a source must not be able to read, however it tries.
  std::string secret() {
    const std::string path = join(outside_.path(), "secret.h");
    EXPECT_TRUE(write_file(path, "hidden_text_1 hidden_text_2\n"));
    return path;
  }

  TempDir dir_, outside_;
  CompileSettings settings_;
  Task task_;
  bool is_cpu_ = true;
};

constexpr const char* kBody = "extern \"C\" void launch(const Args& a) { a.y[0] = 1; }\n";

TEST_F(FailuresTest, HostCompiler) {
  auto compiler = make_cpu_compiler(settings_);
  ASSERT_TRUE(compiler) << compiler.error().text();
  const std::string caret = "^";
  check(**compiler,
        {{"undeclared",
          "extern \"C\" void launch(const Args& a) {\n  a.y[0] = nothing;\n}\n",
          {"kernel.cpp:3", "error", "nothing", "a.y[0] = nothing;", caret}},
         {"type",
          "extern \"C\" void launch(const Args& a) { float* p = a.x; p[0] = 1; }\n",
          {"kernel.cpp:2", "invalid conversion", "float* p = a.x;", caret}},
         {"missing brace",
          "extern \"C\" void launch(const Args& a) { if (true) { a.y[0] = 1; }\n",
          {"error"},
          {"/usr/include"}},
         {"static_assert",
          "static_assert(N == 7, \"N must be seven\");\n"
          "extern \"C\" void launch(const Args&) {}\n",
          {"kernel.cpp:2", "N must be seven"}},
         {"no launch",
          "void start(const Args&) {}\n",
          {"does not define `extern \"C\" void launch(const Args& args)`"},
          {"collect2"}},
         {"undefined function",
          "void nowhere(int);\n"
          "extern \"C\" void launch(const Args&) { nowhere(3); }\n",
          {"undefined reference to `nowhere(int)'"},
          {"collect2", "/usr/bin/ld", ".o:"}},
         {"missing header",
          "#include <no/such/header.h>\n",
          {"kernel.cpp:2", "no/such/header.h", "No such file"},
          {"compilation terminated"}},
         {"library template",
          "#include <algorithm>\n#include <vector>\nstruct P { int a; };\n"
          "extern \"C\" void launch(const Args&) {\n  std::vector<P> v(3);\n"
          "  std::sort(v.begin(), v.end());\n}\n",
          {"no match for 'operator<'", "kernel.cpp:7"}},
         {"deep template",
          "template <int I> struct R { static_assert(I != 1, \"I is one\"); "
          "static int f() { return R<I - 1>::f(); } };\n"
          "extern \"C\" void launch(const Args& a) { a.y[0] = R<40>::f(); }\n",
          {"I is one", "more)"}},
         {"many",
          "extern \"C\" void launch(const Args& a) {\n u1(); u2(); u3(); u4();\n u5();"
          " u6(); u7(); u8(); u9();\n}\n",
          {"u1", "u2", "more error"},
          {"'u8' was not"}},
         {"goes on", "#error \"stop here\"\n", {"kernel.cpp:2", "stop here"}},
         {"asm",
          "extern \"C\" void launch(const Args&) { asm volatile(\"frobnicate %eax\"); }\n",
          {"frobnicate"}}});
}

TEST_F(FailuresTest, HostCompilerSeesOnlyItsOwnFolder) {
  auto compiler = make_cpu_compiler(settings_);
  ASSERT_TRUE(compiler) << compiler.error().text();
  const std::string file = secret();
  for (const std::string& line :
       {"#include \"" + file + "\"\n", "asm(\".incbin \\\"" + file + "\\\"\");\n",
        std::string("#include \"/dev/zero\"\n"),
        std::string("#include \"/proc/self/environ\"\n")}) {
    const std::string log = log_of(**compiler, line + kBody);
    EXPECT_FALSE(contains(log, "hidden_text")) << log;
    EXPECT_TRUE(contains(log, "error") || contains(log, "Error")) << line << log;
    EXPECT_FALSE(contains(log, "ran longer than")) << line << log;
  }
}

// NVRTC gets half of the time limit, then nvcc its own.
TEST_F(FailuresTest, WhatNvrtcDoesNotEndIsGivenToNvcc) {
  settings_.timeout_s = 1.5;
  auto compiler = make_cuda_compiler(settings_);
  if (!compiler) GTEST_SKIP() << compiler.error().message;
  if (!contains((*compiler)->describe(), "nvcc")) GTEST_SKIP() << "there is no nvcc";
  is_cpu_ = false;
  const std::string log =
      log_of(**compiler,
             "__global__ void k(const float* x, float* y) {\n#pragma unroll\n"
             "  for (int i = 0; i < 4096; ++i) y[i] = powf(x[i], y[i + 1]);\n}\n"
             "KP_LAUNCH(k, kp::dim(1), kp::dim(32), 0, arg::x, arg::y)\n");
  EXPECT_TRUE(contains(log, "nvcc ran longer than 1.5 s")) << log;
}

// A source can have NVRTC say what it says without memory. It is asked in a second process, then
// nvcc is, whose #error is GCC's. The worker counts its starts in the folder where it compiles.
TEST_F(FailuresTest, WhereNvrtcFindsNoMemoryItIsAskedAgainThenNvcc) {
  const auto worker = worker_path();
  ASSERT_TRUE(worker);
  const std::string counting = join(outside_.path(), "counting"), real = counting + "-worker";
  std::filesystem::copy_file(*worker, real);  // a compiler sees its worker's folder alone
  ASSERT_TRUE(write_file(counting, "#!/bin/sh\necho start >> starts\nexec " + real + " \"$@\"\n"));
  ASSERT_EQ(::chmod(counting.c_str(), 0755), 0);
  ::setenv("KERNELPRO_WORKER", counting.c_str(), 1);
  const auto compiler = make_cuda_compiler(settings_);
  is_cpu_ = false;
  const std::string kernel =
      "__global__ void k(const float* x, float* y) { y[0] = x[0]; }\n"
      "KP_LAUNCH(k, kp::dim(1), kp::dim(32), 0, arg::x, arg::y)\n";
  std::string other, log;
  int starts = 0;
  if (compiler) {
    other = log_of(**compiler, "#error no memory\n" + kernel);
    log =
        log_of(**compiler, "#error Catastrophic error: unable to obtain mapped memory\n" + kernel);
    for (const auto& each : std::filesystem::recursive_directory_iterator(dir_.path())) {
      if (each.path().filename() != "starts") continue;
      starts += static_cast<int>(lines(read_file(each.path()).value_or("")).size());
    }
  }
  ::setenv("KERNELPRO_WORKER", worker->c_str(), 1);
  if (!compiler) GTEST_SKIP() << compiler.error().message;
  const std::string about = (*compiler)->describe();
  if (contains(about, "no nvcc") || contains(about, "no NVRTC")) GTEST_SKIP() << about;
  EXPECT_TRUE(contains(other, "#error directive: no memory")) << "NVRTC's own words: " << other;
  EXPECT_TRUE(contains(log, "error: #error Catastrophic error")) << log;
  EXPECT_EQ(starts, 2);
}

TEST_F(FailuresTest, BombsEndAndAreNamed) {
  settings_.timeout_s = 4;
  auto compiler = make_cpu_compiler(settings_);
  ASSERT_TRUE(compiler) << compiler.error().text();
  const std::string wide = "asm(\".fill 3000000000, 1, 0\");\n";
  EXPECT_NE(log_of(**compiler, wide + kBody), "it compiled");
  const std::string loop =
      "constexpr int f(long n) { int r = 0; for (long i = 0; i < n; ++i) r += i % 7; return r; }\n"
      "template <int I> constexpr int g() { return f(33000000 + I); }\n"
      "template <int I> constexpr int h() { if constexpr (I > 0) return h<I - 1>() + f(200000 + "
      "I); "
      "else return 0; }\nconstexpr int kValue = h<800>();\n";
  const std::string log = log_of(**compiler, loop + kBody);
  EXPECT_NE(log, "it compiled");
}

class CudaFailuresTest : public FailuresTest {
 protected:
  void SetUp() override {
    FailuresTest::SetUp();
    is_cpu_ = false;
    auto compiler = make_cuda_compiler(settings_);
    if (!compiler) GTEST_SKIP() << compiler.error().text();
    compiler_ = std::move(*compiler);
  }
  std::unique_ptr<Compiler> compiler_;
};

#define LAUNCH \
  "extern \"C\" void launch(const Args& a, cudaStream_t s) { k<<<1, 32, 0, s>>>(a.y); }\n"

TEST_F(CudaFailuresTest, Nvcc) {
  if (!contains(compiler_->describe(), "nvcc ")) GTEST_SKIP() << "no nvcc";
  if (contains(compiler_->describe(), "no nvcc")) GTEST_SKIP() << "no nvcc";
  check(*compiler_,
        {{"undeclared",
          "__global__ void k(float* y) { y[0] = nothing; }\n" LAUNCH,
          {"kernel.cu(2): error", "nothing", "__global__ void k(float* y) { y[0] = nothing; }",
           "                                       ^"},
          {"detected in the compilation"}},
         {"no launch",
          "__global__ void k(float* y) { y[0] = 1; }\n"
          "void start(const Args& a) { k<<<1, 1>>>(a.y); }\n",
          {"kernel.cu does not define `extern \"C\" void launch(const Args& args, cudaStream_t "
           "stream)`"},
          {"collect2", "cudafe1"}},
         {"static_assert in a template",
          "template <int I> struct R { static __device__ float f(float x) "
          "{ static_assert(I != 3, \"I must not be three\"); return R<I - 1>::f(x); } };\n"
          "template <> struct R<0> { static __device__ float f(float x) { return x; } };\n"
          "__global__ void k(float* y) { y[0] = R<30>::f(y[0]); }\n" LAUNCH,
          {"I must not be three", "more)", "I=30"},
          {"I=12]"}},
         {"open brace",
          "__global__ void k(float* y) { y[0] = 1;\n" LAUNCH,
          {"still open"},
          {"/usr/include"}},
         {"too much shared memory",
          "namespace { template <int T> __global__ void big(float* y) { "
          "__shared__ float s[T]; s[threadIdx.x] = y[0]; __syncthreads(); y[0] = s[threadIdx.x + "
          "1]; }"
          " }\nextern \"C\" void launch(const Args& a, cudaStream_t s) { big<60000><<<1, 1, 0, s>>>"
          "(a.y); }\n",
          {"uses too much shared data", "big<60000>"},
          {"_ZN"}},
         {"bad instruction",
          "__global__ void k(float* y) {\n  int z;\n"
          "  asm volatile(\"mov.u99 %0, %1;\" : \"=r\"(z) : \"r\"(1));\n  y[0] = z;\n}\n" LAUNCH,
          {"kernel.cu(4): error: ptxas: Unknown modifier '.u99'", "mov.u99"},
          {"aborted"}},
         {"undefined device function",
          "__device__ float nowhere(float);\n"
          "__global__ void k(float* y) { y[0] = nowhere(1); }\n" LAUNCH,
          {"nowhere(float)"}},
         {"host function",
          "#include <cstdlib>\n__global__ void k(float* y) { y[0] = rand(); }\n" LAUNCH,
          {"kernel.cu(3): error", "rand"}}});
}

TEST_F(CudaFailuresTest, Nvrtc) {
  if (contains(compiler_->describe(), "no NVRTC")) GTEST_SKIP() << "no NVRTC";
  check(*compiler_,
        {{"undeclared",
          "__global__ void k(float* y) {\n  y[0] = nothing;\n}\nKP_LAUNCH(k, kp::dim(1), "
          "kp::dim(32), 0, arg::y)\n",
          {"kernel.cu(3): error", "nothing", "y[0] = nothing;", "^"},
          {"detected in the compilation", "precompiled"}},
         {"static_assert",
          "static_assert(N == 7, \"N must be seven\");\n__global__ void k() {}\n"
          "KP_LAUNCH(k, kp::dim(1), kp::dim(32), 0)\n",
          {"kernel.cu(2): error", "N must be seven"}},
         {"missing header",
          "#include <vectorious>\nKP_LAUNCH(k, kp::dim(1), kp::dim(32), 0, arg::y)\n",
          {"kernel.cu:2", "vectorious"}},
         {"bad instruction",
          "__global__ void k(float* y) { int z; asm volatile(\"mov.u99 %0, 1;\" "
          ": \"=r\"(z)); y[0] = z; }\nKP_LAUNCH(k, kp::dim(1), kp::dim(32), 0, arg::y)\n",
          {"Unknown modifier '.u99'"},
          {"aborted"}},
         {"types",
          "__global__ void k(float* y) { const float* x = y; *x = 3; }\nKP_LAUNCH(k, kp::dim(1), "
          "kp::dim(32), 0, arg::y)\n",
          {"kernel.cu(2): error", "^"}}});
  const std::string file = secret();
  const std::string log = log_of(
      *compiler_, "#include \"" + file +
                      "\"\n__global__ void k() {}\nKP_LAUNCH(k, kp::dim(1), kp::dim(32), 0)\n");
  EXPECT_FALSE(contains(log, "hidden_text")) << log;
  EXPECT_TRUE(contains(log, "error")) << log;
}

}  // namespace
}  // namespace kernelpro
