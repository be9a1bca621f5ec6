// SPDX-License-Identifier: Apache-2.0
// Uses this machine's real compilers; needs no GPU.
#include "build/code_hash.h"

#include <gtest/gtest.h>

#include "base/files.h"
#include "build/compiler.h"

namespace kernelpro {
namespace {

struct CodeHash : ::testing::Test {
  TempDir dir;
  Task task;

  CodeHash() {
    task.name = "t";
    task.tensors = {{"x", Role::kInput, DType::kFp32, {"8"}, {}, 0},
                    {"y", Role::kOutput, DType::kFp32, {"8"}, {}, 0}};
    task.cases = {{"c", {}, true, {}}};
  }
  CompileSettings settings() const {
    CompileSettings settings;
    settings.cache_dir = dir.path();
    settings.cuda_arch = "sm_90a";
    return settings;
  }
  std::string hash(Compiler& compiler, Language language, const std::string& source,
                   const KnobValues& knobs = {}) {
    const auto built = compiler.compile(task, task.cases[0], {language, source, knobs, {}});
    if (!built || !std::holds_alternative<Binary>(*built)) {
      ADD_FAILURE() << (built ? std::get<CompileError>(*built).log : built.error().text());
      return "";
    }
    return code_hash({std::get<Binary>(*built)});
  }
};

TEST_F(CodeHash, OfACpuKernelIgnoresWhatIsNoCode) {
  auto compiler = make_cpu_compiler(settings());
  ASSERT_TRUE(compiler) << compiler.error().text();
  const auto source = [](const char* head, const char* factor) {
    return std::string(head) + "#include \"task.h\"\nextern \"C\" void launch(const Args& a) {\n" +
           "  for (int i = 0; i < 8; ++i) a.y[i] = " + factor + " * a.x[i];\n}\n";
  };
  const std::string plain = hash(**compiler, Language::kCpp, source("", "2"));
  EXPECT_FALSE(plain.empty());
  const std::string commented = source("// the same\n\n// @knob UNUSED 1 2\n", "2");
  EXPECT_EQ(hash(**compiler, Language::kCpp, commented, {{"UNUSED", "2"}}), plain);
  EXPECT_NE(hash(**compiler, Language::kCpp, source("", "3")), plain);
}

// A twin that reads what it shall do in a note of its own file.
TEST_F(CodeHash, OfACpuKernelKnowsItsNotes) {
  auto compiler = make_cpu_compiler(settings());
  ASSERT_TRUE(compiler) << compiler.error().text();
  const auto source = [](const std::string& word) {
    return "#include \"task.h\"\nasm(\".pushsection .note.x, \\\"a\\\", @note\\n.globl word\\n\"\n"
           "    \"word: .long " +
           word +
           "\\n.popsection\");\nextern \"C\" const int word;\n"
           "extern \"C\" void launch(const Args& a) {\n"
           "  for (int i = 0; i < 8; ++i) a.y[i] = float(word) * a.x[i];\n}\n";
  };
  EXPECT_NE(hash(**compiler, Language::kCpp, source("1")),
            hash(**compiler, Language::kCpp, source("2")));
}

// The same code and data, to the bit: only what the loader writes differs.
TEST_F(CodeHash, OfACpuKernelKnowsItsRelocations) {
  auto compiler = make_cpu_compiler(settings());
  ASSERT_TRUE(compiler) << compiler.error().text();
  const auto source = [](const std::string& which) {
    return "#include \"task.h\"\nusing Function = void (*)(const Args&);\n"
           "extern \"C\" [[gnu::noinline, gnu::no_reorder]] void one(const Args& a) {\n"
           "  a.y[0] = a.x[0];\n}\n"
           "extern \"C\" [[gnu::noinline, gnu::no_reorder]] void other(const Args&) {}\n"
           "extern \"C\" const Function table[];\n"
           "extern \"C\" const Function table[] = {" +
           which +
           "};\nextern \"C\" void launch(const Args& a) {\n"
           "  const Function* at = table;\n  asm volatile(\"\" : \"+r\"(at));\n  (*at)(a);\n}\n";
  };
  EXPECT_NE(hash(**compiler, Language::kCpp, source("one")),
            hash(**compiler, Language::kCpp, source("other")));
}

TEST_F(CodeHash, OfAPlanKnowsItsLaunches) {
  auto compiler = make_cuda_compiler(settings());
  if (!compiler) GTEST_SKIP() << compiler.error().text();
  const auto source = [](const char* head, const char* factor, const char* blocks) {
    return std::string(head) + "#include \"task.h\"\n" +
           "__global__ void k(const float* x, float* y) { y[threadIdx.x] = " + factor +
           " * x[threadIdx.x]; }\nKP_LAUNCH(k, kp::dim(" + blocks +
           "), kp::dim(8), 0, arg::x, arg::y);\n";
  };
  const std::string plain = hash(**compiler, Language::kCuda, source("", "2", "1"));
  EXPECT_FALSE(plain.empty());
  EXPECT_EQ(hash(**compiler, Language::kCuda, source("// idea: none\n\n", "2", "1")), plain);
  EXPECT_EQ(hash(**compiler, Language::kCuda, source("", "(1 + 1)", "1")), plain);
  EXPECT_NE(hash(**compiler, Language::kCuda, source("", "3", "1")), plain);
  EXPECT_NE(hash(**compiler, Language::kCuda, source("", "2", "2")), plain);
}

TEST_F(CodeHash, OfAPyTorchFileIsNotKnown) {
  Binary module;
  module.form = Binary::Form::kModule;
  EXPECT_EQ(code_hash({module}), "");
  Binary gone;
  gone.cubin = "/nonexistent.cubin";
  EXPECT_EQ(code_hash({gone}), "");
}

}  // namespace
}  // namespace kernelpro
