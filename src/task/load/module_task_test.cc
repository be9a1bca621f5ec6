// SPDX-License-Identifier: Apache-2.0
#include "task/load/module_task.h"

#include <gtest/gtest.h>

#include "base/files.h"
#include "base/process/subprocess.h"
#include "base/text.h"
#include "task/load/header.h"
#include "task/load/limits.h"

namespace kernelpro {
namespace {

ModuleDescription described(std::int64_t rows) {
  ModuleDescription d;
  d.items = {{"x", "x", Role::kInput, false, DType::kFp32, {rows, 8}},
             {"i", "i", Role::kInput, false, DType::kInt64, {rows}},
             {"l_weight", "l.weight", Role::kParameter, false, DType::kFp32, {4, 8}},
             {"scale", "scale", Role::kParameter, true, DType::kBf16, {}},
             {"out", "out", Role::kOutput, false, DType::kFp32, {rows, 4}}};
  d.dims = {{"rows", rows}, {"dim", 1}, {"offset", -3}, {"_Big", 1}};
  d.constants = {
      {"alpha", "0.25"}, {"mode", "\"mean\""}, {"causal", "true"}, {"n", "5000000000ll"}};
  d.flops = 64.0 * static_cast<double>(rows);
  d.matmul_flops = d.flops;
  d.intermediate_bytes = 3e6 + 16.0 * static_cast<double>(rows);
  d.note = "training mode";
  return d;
}

Result<Task> task() {
  return task_from_module("import torch\n", "/tasks/level 1/19_ReLU.py",
                          {{"small", false, described(2)}, {"full", true, described(1024)}});
}

TEST(ModuleTask, HasCasesWithTheirOwnShapes) {
  const auto t = task();
  ASSERT_TRUE(t) << t.error().text();
  EXPECT_EQ(t->name, "19_ReLU");
  EXPECT_EQ(t->folder, "/tasks/level 1");
  ASSERT_TRUE(t->module);
  EXPECT_EQ(t->module->source, "import torch\n");
  EXPECT_EQ(t->module->note, "training mode");
  EXPECT_EQ(t->precision, Precision::kFp32);
  ASSERT_EQ(t->tensors.size(), 5u);
  EXPECT_EQ(t->tensors[2].role, Role::kParameter);
  EXPECT_EQ(t->tensors[2].init.kind, Init::Kind::kModule);
  ASSERT_EQ(t->cases.size(), 2u);
  EXPECT_FALSE(t->cases[0].timed);
  EXPECT_EQ(shaped_tensors(*t, t->cases[0])[0].shape, (std::vector<std::int64_t>{2, 8}));
  EXPECT_EQ(shaped_tensors(*t, t->cases[1])[4].bytes, 1024 * 4 * 4);
  EXPECT_EQ(shaped_tensors(*t, t->cases[1])[3].elements, 1);
  EXPECT_EQ(task_flops(*t, t->cases[0]), 128);
  EXPECT_EQ(task_matmul_flops(*t, t->cases[1]), 65536);
  // 3 MB in addition to the output, in whole MiB, plus 16 MiB.
  EXPECT_EQ(workspace_bytes(*t, t->cases[1]), (3 + 16) << 20);
}

TEST(ModuleTask, SurvivesTheStore) {
  const auto t = task();
  ASSERT_TRUE(t);
  const auto back = task_from_json(task_to_json(*t));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->content_hash(), t->content_hash());
  EXPECT_EQ(back->cases[1].constants, t->cases[1].constants);
  EXPECT_EQ(back->cases[1].shapes, t->cases[1].shapes);
  EXPECT_EQ(task_header(*back, back->cases[1], TargetKind::kCuda),
            task_header(*t, t->cases[1], TargetKind::kCuda));
}

TEST(ModuleTask, PrecisionFollowsTheInputs) {
  ModuleDescription half = described(2);
  half.items[0].dtype = DType::kFp16;
  EXPECT_EQ(task_from_module("", "a.py", {{"c", true, half}})->precision, Precision::kFp16);
  half.items.push_back({"y", "y", Role::kInput, false, DType::kFp32, {2}});
  EXPECT_EQ(task_from_module("", "a.py", {{"c", true, half}})->precision, Precision::kFp32);
}

TEST(ModuleTask, RefusesWhatCannotBe) {
  ModuleDescription many = described(2);
  while (many.items.size() <= kMaxModuleTensors) {
    const std::string name = "p" + std::to_string(many.items.size());
    many.items.push_back({name, name, Role::kParameter, false, DType::kFp32, {2}});
  }
  const auto crowded = task_from_module("", "a.py", {{"c", true, many}});
  ASSERT_FALSE(crowded);
  EXPECT_EQ(crowded.error().kind, ErrorKind::kTask);
  ModuleDescription other = described(2);
  other.items[0].dtype = DType::kFp16;
  EXPECT_FALSE(task_from_module("", "a.py", {{"a", false, other}, {"b", true, described(4)}}));
  ModuleDescription empty = described(0);
  EXPECT_FALSE(task_from_module("", "a.py", {{"a", true, empty}}));
  ModuleDescription huge = described(std::int64_t{1} << 50);
  EXPECT_FALSE(task_from_module("", "a.py", {{"a", true, huge}}));
}

TEST(ModuleTask, HeaderCompiles) {
  const auto t = task();
  ASSERT_TRUE(t);
  const std::string header = task_header(*t, t->cases[1], TargetKind::kCpu);
  for (const char* part :
       {"constexpr int rows = 1024;\n", "constexpr int dim_ = 1;\n", "constexpr int offset = -3;\n",
        "constexpr auto alpha = 0.25;\n", "const float* x;  // [1024] [8]\n",
        "const kp::bfloat16* scale;  // one element\n", "WORKSPACE_BYTES = 19922944"}) {
    EXPECT_TRUE(contains(header, part)) << part << "\n" << header;
  }
  const TempDir dir;
  ASSERT_TRUE(write_file(join(dir.path(), "task.h"), header));
  ASSERT_TRUE(
      write_file(join(dir.path(), "main.cpp"),
                 "#include \"task.h\"\n"
                 "static_assert(alpha == 0.25 && causal && n == 5000000000 && rows == 1024);\n"
                 "extern \"C\" void launch(const Args& args) {\n"
                 "  for (int i = 0; i < rows * 4; ++i) args.out[i] = args.x[i] + mode[0];\n"
                 "}\n"));
  Command command;
  const char* cxx = std::getenv("CXX");
  command.argv = {cxx != nullptr && *cxx != 0 ? cxx : "c++",
                  "-std=c++20",
                  "-Wall",
                  "-Wextra",
                  "-Werror",
                  "-fsyntax-only",
                  "main.cpp"};
  command.cwd = dir.path();
  const auto exit = run(command);
  ASSERT_TRUE(exit);
  EXPECT_TRUE(exit->ok()) << exit->output;
}

}  // namespace
}  // namespace kernelpro
