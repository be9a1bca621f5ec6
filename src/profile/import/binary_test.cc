// SPDX-License-Identifier: Apache-2.0
// Real compilers and disassemblers, where they are installed.
#include "profile/import/binary.h"

#include <gtest/gtest.h>

#include "base/cuda_toolkit.h"
#include "base/files.h"
#include "base/process/subprocess.h"
#include "base/text.h"

namespace kernelpro {
namespace {

struct BinaryTest : ::testing::Test {
  TempDir dir;

  std::string compile(const std::string& name, std::vector<std::string> argv,
                      const std::string& source) {
    const std::string from = join(dir.path(), name + ".src.cu");
    const std::string to = join(dir.path(), name);
    EXPECT_TRUE(write_file(from, source));
    argv.insert(argv.end(), {"-o", to, from});
    Command command;
    command.argv = std::move(argv);
    command.limits.wall_seconds = 300;
    const auto exit = run(command);
    EXPECT_TRUE(exit && exit->ok()) << (exit ? exit->output : exit.error().text());
    return to;
  }
};

constexpr const char* kKernels = R"(
template <class T> __global__ void axpy(T* y, const T* x, T a, int n) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) y[i] += a * x[i];
}
template __global__ void axpy<float>(float*, const float*, float, int);
__global__ void indexed(float* y, int n) {
  float b[64];
  for (int i = 0; i < 64; ++i) b[i] = y[i * n];
  for (int i = 0; i < n; ++i) b[i % 64] += y[i];
  for (int i = 0; i < 64; ++i) y[i] = b[i];
}
)";

TEST_F(BinaryTest, Cubin) {
  const std::string nvcc = find_cuda_tool("nvcc");
  if (nvcc.empty() || find_cuda_tool("nvdisasm").empty()) GTEST_SKIP() << "no nvcc or nvdisasm";
  const std::string cubin = compile("k.cubin", {nvcc, "-arch=sm_90a", "-cubin"}, kKernels);
  const auto import = import_binary(cubin, "");
  ASSERT_TRUE(import) << import.error().text();
  EXPECT_EQ(import->evidence.texts.at("arch").rfind("sm_90", 0), 0u);
  ASSERT_EQ(import->evidence.kernels.size(), 2u);
  for (const KernelEvidence& kernel : import->evidence.kernels) {
    EXPECT_GT(kernel.facts.get("sass.hot.instructions").value_or(0), 0) << kernel.name;
    // Facts that only the compiler reported are not made up.
    EXPECT_FALSE(kernel.facts.get("ptxas.spill_store_bytes"));
  }
  for (const char* name : {"_Z7indexedPfi", "indexed(float*, int)"}) {
    const auto named = import_binary(cubin, "", "", {name, "elsewhere"});
    ASSERT_TRUE(named) << named.error().text();
    ASSERT_EQ(named->evidence.kernels.size(), 1u);
    EXPECT_EQ(named->evidence.kernels[0].facts.texts.at("kernel"), "_Z7indexedPfi");
    EXPECT_EQ(named->evidence.texts.at("arch").rfind("sm_90", 0), 0u);
  }
  EXPECT_FALSE(import_binary(cubin, "", "", {"elsewhere"}));
  const auto one = import_binary(cubin, "", "axpy");
  ASSERT_TRUE(one);
  ASSERT_EQ(one->evidence.kernels.size(), 1u);
  EXPECT_TRUE(contains(one->evidence.kernels[0].name, "axpy<float>"));
  EXPECT_FALSE(import_binary(cubin, "", "no-such-kernel"));
  EXPECT_EQ(list_dir(dir.path()).size(), 2u) << "nothing is written beside a user's file";
}

TEST_F(BinaryTest, HostCodeWithoutDeviceCode) {
  if (find_program("objdump").empty()) GTEST_SKIP() << "no objdump";
  const std::string so = compile(
      "k.so", {"c++", "-x", "c++", "-O2", "-shared", "-fPIC"},
      "extern \"C\" void launch(float* y, int n) { for (int i = 0; i < n; ++i) y[i] *= 2; }\n");
  const auto import = import_binary(so, "");
  ASSERT_TRUE(import) << import.error().text();
  EXPECT_EQ(import->evidence.texts.at("target"), "cpu");
  EXPECT_GT(import->evidence.get("cpu.asm.hot.instructions").value_or(0), 0);
  EXPECT_EQ(list_dir(dir.path()).size(), 2u) << "nothing is written beside a user's file";
  const std::string other = compile("other.so", {"c++", "-x", "c++", "-shared", "-fPIC"},
                                    "int answer() { return 42; }\n");
  const auto none = import_binary(other, "");
  ASSERT_FALSE(none);
  EXPECT_TRUE(contains(none.error().message, "neither device code nor"));
}

TEST_F(BinaryTest, WhatIsNoBinary) {
  const std::string path = join(dir.path(), "x");
  ASSERT_TRUE(write_file(path, "text"));
  EXPECT_FALSE(import_binary(path, ""));
  ASSERT_TRUE(write_file(path, std::string("\x7f"
                                           "ELF") +
                                   std::string(100, '\0')));
  EXPECT_FALSE(import_binary(path, ""));
  EXPECT_FALSE(import_binary(join(dir.path(), "absent"), ""));
}

}  // namespace
}  // namespace kernelpro
