// SPDX-License-Identifier: Apache-2.0
// The real compiler builds the output of `kernelpro new` for CUDA files, references included.
#include <gtest/gtest.h>

#include "base/files.h"
#include "base/text.h"
#include "build/compiler.h"
#include "task/load/loader.h"
#include "task/load/unfilled.h"
#include "task/scaffold/scaffold.h"

namespace kernelpro {
namespace {

struct ScaffoldBuild : ::testing::Test {
  TempDir cache;
  std::unique_ptr<Compiler> compiler;
  void SetUp() override {
    CompileSettings settings;
    settings.cache_dir = cache.path();
    settings.cuda_arch = "sm_90a";
    auto made = make_cuda_compiler(settings);
    if (!made || find_program("nvcc").empty()) GTEST_SKIP() << "there is no CUDA compiler";
    compiler = std::move(*made);
  }

  static Scaffold from(const std::string& file) {
    ScaffoldSource source;
    source.file = file;
    source.name = file.substr(0, file.find('.'));
    source.text =
        *read_file(join(std::string(KERNELPRO_SOURCE_DIR) + "/src/task/scaffold/fixtures", file));
    Scaffold scaffold = *scaffold_from(source);
    for (auto& [name, text] : scaffold.files) text = replace_all(text, std::string(kUnfilled), "");
    return scaffold;
  }

  static std::string said(const CompileResult& result) {
    if (!result) return result.error().text();
    const auto* error = std::get_if<CompileError>(&*result);
    return error == nullptr ? "" : error->log;
  }
};

TEST_F(ScaffoldBuild, NativeFiles) {
  for (const char* file : {"softmax.cu", "axpy.cu", "messy.cu"}) {
    SCOPED_TRACE(file);
    const Scaffold scaffold = from(file);
    const TempDir folder;
    for (const auto& [name, text] : scaffold.files) {
      ASSERT_TRUE(write_file(join(folder.path(), name), text));
    }
    const auto task = load_task(folder.path());
    ASSERT_TRUE(task) << task.error().text();
    Candidate candidate;
    candidate.language = Language::kCuda;
    candidate.source = task->kernel_cu;
    EXPECT_EQ(said(compiler->compile(*task, task->cases[0], candidate)), "");
    EXPECT_EQ(said(compiler->compile_reference(*task, task->cases[0])), "");
  }
}

// Uses the stand-ins for PyTorch's types, which a capture process can load without PyTorch.
TEST_F(ScaffoldBuild, AnExtension) {
  const Scaffold scaffold = from("relu_extension.cu");
  Task task;
  task.name = "relu";
  task.tensors = {Tensor{"x", Role::kInput, DType::kFp32, {}, {Init::Kind::kModule, 0, 0}, 0},
                  Tensor{"out", Role::kOutput, DType::kFp32, {}, {}, 0}};
  Case c{"full", {{"ROWS", 64}, {"COLS", 128}}, true, {}};
  c.shapes = {{64, 128}, {64, 128}};
  task.cases = {c};
  task.module = Module{"/model.py", scaffold.files.at("model.py"), ""};
  Candidate candidate;
  candidate.language = Language::kCuda;
  candidate.source = scaffold.files.at("kernel.cu");
  EXPECT_EQ(said(compiler->compile(task, task.cases[0], candidate)), "");
}

}  // namespace
}  // namespace kernelpro
