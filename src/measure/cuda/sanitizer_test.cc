// SPDX-License-Identifier: Apache-2.0
#include "measure/cuda/sanitizer.h"

#include <gtest/gtest.h>

#include "base/cuda_toolkit.h"
#include "base/files.h"
#include "base/text.h"
#include "build/compiler.h"
#include "measure/ceilings/ceilings.h"

namespace kernelpro {
namespace {

class SanitizerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto text =
        read_file(std::string(KERNELPRO_SOURCE_DIR) + "/src/measure/cuda/testdata/sanitizer.xml");
    ASSERT_TRUE(text);
    xml_ = *text;
    tensors_.resize(2);
    tensors_[0].name = "x";
    tensors_[1].name = "y";
    tensors_[1].output = true;
    layout_.slots = {{0x2000003ff000, 4096, 0x200000200000, 2 << 20},
                     {0x200000bff000, 4096, 0x200000a00000, 2 << 20},
                     {0x201000000000, 0xbfe000, 0x201000000000, 0xc00000}};
    layout_.has_workspace = true;
  }
  std::string xml_;
  AddressLayout layout_;
  std::vector<JudgeTensor> tensors_;
};

TEST_F(SanitizerTest, TheFirstFaultOfAKernelInOneSentence) {
  EXPECT_EQ(
      sanitizer_sentence(xml_, layout_, tensors_),
      "compute-sanitizer: Invalid __global__ write of size 4 bytes is out of bounds, by thread "
      "(7, 0, 0) of block (2, 0, 0) in far at kernel.cu:19; "
      "address 0x201000bff000, 4096 bytes past the end of the workspace");
}

// A recording: a bulk copy whose box began at -8 bytes, which traps.
TEST_F(SanitizerTest, WhatTheHardwareTrappedOnHasItsLines) {
  const auto xml = read_file(std::string(KERNELPRO_SOURCE_DIR) +
                             "/src/measure/cuda/testdata/sanitizer_exception.xml");
  ASSERT_TRUE(xml);
  EXPECT_EQ(sanitizer_sentence(*xml, layout_, tensors_),
            "compute-sanitizer: Illegal instruction, by thread (256, 0, 0) of block (44, 0, 0) in "
            "tma_load at kernel.cu:85, called in load_x at kernel.cu:273, called in convolve at "
            "kernel.cu:317; a tensor copy traps so if its box does not begin at a multiple of 16 "
            "bytes in the contiguous dimension");
}

TEST_F(SanitizerTest, AddressesAreToldByTheNearestTensor) {
  layout_.slots.pop_back();
  EXPECT_TRUE(
      contains(sanitizer_sentence(xml_, layout_, tensors_), "68.7 GB past the end of tensor y"))
      << sanitizer_sentence(xml_, layout_, tensors_);
  const std::string inside = replace_all(xml_, "0x201000bff000", "0x200000bff004");
  EXPECT_TRUE(contains(sanitizer_sentence(inside, layout_, tensors_), "4 bytes into tensor y"));
  const std::string before = replace_all(xml_, "0x201000bff000", "0x2000003feffc");
  EXPECT_TRUE(contains(sanitizer_sentence(before, layout_, tensors_),
                       "4 bytes before the start of tensor x"));
  const std::string null = replace_all(xml_, "0x201000bff000", "0x4");
  EXPECT_TRUE(contains(sanitizer_sentence(null, layout_, tensors_), "far from every tensor"));
}

TEST_F(SanitizerTest, NamesAreReadAsXmlHasThem) {
  const std::string xml = replace_all(xml_, "<func>far<", "<func>f&lt;(int)2&gt;(const T &amp;)<");
  EXPECT_TRUE(contains(sanitizer_sentence(xml, layout_, tensors_), " in f<(int)2>(const T &) at "))
      << sanitizer_sentence(xml, layout_, tensors_);
}

TEST_F(SanitizerTest, NothingFoundIsNothingSaid) {
  EXPECT_EQ(sanitizer_sentence("", layout_, tensors_), "");
  EXPECT_EQ(
      sanitizer_sentence("<ComputeSanitizerOutput>\n</ComputeSanitizerOutput>", layout_, tensors_),
      "");
  for (std::size_t cut = 0; cut < xml_.size(); cut += 7) {
    (void)sanitizer_sentence(xml_.substr(0, cut), layout_, tensors_);
  }
}

// The real tool on a real kernel.
TEST_F(SanitizerTest, FindsAnOverrunOnTheGpu) {
  const Result<Machine> machine = describe_cuda_machine();
  if (!machine) GTEST_SKIP() << "no cuda target here: " << machine.error().text();
  if (find_cuda_tool("compute-sanitizer").empty()) GTEST_SKIP() << "no compute-sanitizer here";
  TempDir cache;
  CompileSettings settings;
  settings.cache_dir = cache.path();
  settings.cuda_arch = machine->arch;
  auto compiler = make_cuda_compiler(settings);
  if (!compiler) GTEST_SKIP() << compiler.error().text();
  Task task;
  task.name = "t";
  task.tensors = {{"x", Role::kInput, DType::kFp32, {"N"}, {}, 0},
                  {"y", Role::kOutput, DType::kFp32, {"N"}, {}, 0}};
  task.cases = {{"c", {{"N", 1024}}, true, {}}};
  const std::vector<JudgeTensor> tensors =
      judge_tensors(task, task.cases[0], Policy::kContract, true);
  const AddressLayout layout = make_layout({4096, 4096}, 0, 2 << 20, 0x200000000000);
  for (const int shift : {0, 64}) {
    const std::string source =
        "#include \"task.h\"\n__global__ void copy(const float* x, float* y) {\n"
        "  const int i = blockIdx.x * blockDim.x + threadIdx.x;\n  y[i + " +
        std::to_string(shift) +
        "] = x[i];\n}\nKP_LAUNCH(copy, kp::dim(4), kp::dim(256), 0, arg::x, arg::y)\n";
    const CompileResult built =
        (*compiler)->compile(task, task.cases[0], {Language::kCuda, source, {}, {}});
    ASSERT_TRUE(built) << built.error().text();
    ASSERT_TRUE(std::holds_alternative<Binary>(*built)) << std::get<CompileError>(*built).log;
    const Binary& binary = std::get<Binary>(*built);
    const std::string said = sanitize(binary, binary.plan, layout, tensors, 30);
    if (shift == 0) {
      EXPECT_EQ(said, "");
    } else {
      EXPECT_TRUE(contains(said, "write of size 4 bytes")) << said;
      EXPECT_TRUE(contains(said, "of block (3, 0, 0) in copy")) << said;
      EXPECT_TRUE(contains(said, "kernel.cu:4")) << said;
      EXPECT_TRUE(contains(said, "past the end of tensor y")) << said;
    }
  }
}

}  // namespace
}  // namespace kernelpro
