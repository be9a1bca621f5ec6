// SPDX-License-Identifier: Apache-2.0
// `kernelpro new` and then `kernelpro evaluate`, through the real binary.
#include <gtest/gtest.h>

#include "base/files.h"
#include "base/json.h"
#include "base/process/subprocess.h"
#include "base/text.h"

namespace kernelpro {
namespace {

Exit kernelpro(std::vector<std::string> arguments) {
  Command command;
  command.argv = {join(executable_dir(), "kernelpro")};
  command.argv.insert(command.argv.end(), arguments.begin(), arguments.end());
  command.limits.wall_seconds = 900;
  const auto exit = run(command);
  EXPECT_TRUE(exit.has_value());
  return exit ? *exit : Exit();
}

void replace_in(const std::string& path, const std::string& from, const std::string& to) {
  const auto text = read_file(path);
  ASSERT_TRUE(text) << text.error().text();
  ASSERT_TRUE(write_file(path, replace_all(*text, from, to)));
}

TEST(New, FromCodeToAVerdict) {
  const TempDir dir;
  const std::string task = join(dir.path(), "dot");
  const Exit made = kernelpro(
      {"new", "--from", std::string(KERNELPRO_SOURCE_DIR) + "/src/task/scaffold/fixtures/dot.cpp",
       "--output", task});
  ASSERT_TRUE(made.ok()) << made.output;
  EXPECT_TRUE(contains(made.output, "to decide: the shape of x")) << made.output;
  const std::string kernel = join(task, "kernel.cpp");

  const Exit unfilled = kernelpro({"evaluate", task, kernel});
  EXPECT_EQ(unfilled.code, 2);
  EXPECT_TRUE(contains(unfilled.output, "to be filled in")) << unfilled.output;

  for (const std::string& name : list_dir(task)) {
    replace_in(join(task, name), "TODO(kernelpro)", "");
  }
  replace_in(join(task, "task.toml"), "8192", "512");
  // Correct the scaffold's guess: the output has one value per row.
  const std::string output = "role = \"output\"\ndtype = \"fp32\"\nshape = [\"ROWS\"";
  replace_in(join(task, "task.toml"), output + ", \"COLS\"]", output + "]");
  const std::string wrong = join(dir.path(), "wrong.cpp"), broken = join(dir.path(), "broken.cpp");
  ASSERT_TRUE(write_file(wrong, replace_all(*read_file(kernel), "s += a[i]", "s -= a[i]")));
  ASSERT_TRUE(write_file(broken, "not C++\n"));

  const Exit right = kernelpro({"evaluate", task, kernel});
  EXPECT_EQ(right.code, 0) << right.output;
  EXPECT_TRUE(contains(right.output, "kernel.cpp: correct, ")) << right.output;

  const Exit several = kernelpro({"evaluate", task, kernel, wrong, broken, "--json"});
  EXPECT_EQ(several.code, 1);
  const auto json = parse_json(several.output);
  ASSERT_TRUE(json && json->is_array()) << several.output;
  ASSERT_EQ(json->size(), 3u);
  EXPECT_EQ((*json)[0]["outcome"], "correct");
  EXPECT_GT((*json)[0]["time_us"].get<double>(), 0);
  EXPECT_EQ((*json)[1]["outcome"], "wrong-result");
  EXPECT_EQ((*json)[1]["tensor"], "out");
  EXPECT_FALSE((*json)[1]["reason"].get<std::string>().empty());
  EXPECT_EQ((*json)[2]["outcome"], "compile-error");

  const Exit verdicts = kernelpro({"evaluate", task, kernel, wrong, "--no-timing", "--json"});
  EXPECT_EQ(verdicts.code, 1);
  const auto untimed = parse_json(verdicts.output);
  ASSERT_TRUE(untimed && untimed->is_array()) << verdicts.output;
  EXPECT_EQ((*untimed)[0]["outcome"], "correct");
  EXPECT_TRUE((*untimed)[0]["timings"].empty());
  EXPECT_EQ((*untimed)[1]["outcome"], "wrong-result");
  const Exit text = kernelpro({"evaluate", task, kernel, "--no-timing"});
  EXPECT_TRUE(contains(text.output, "kernel.cpp: correct\n")) << text.output;
  EXPECT_EQ(kernelpro({"evaluate", task, kernel, "--no-timing", "--against", kernel}).code, 2);
}

TEST(New, WhatIsATaskAlreadyIsNotMadeAgain) {
  const TempDir dir;
  const std::string example = std::string(KERNELPRO_SOURCE_DIR) + "/examples/softmax";
  const std::string module = join(dir.path(), "relu.py");
  ASSERT_TRUE(write_file(module,
                         "import torch\nclass Model(torch.nn.Module):\n"
                         "    def forward(self, x): return torch.relu(x)\n"
                         "def get_inputs(): return [torch.rand(8)]\n"));
  for (const std::string& from : {example, example + "/kernel.cpp", module}) {
    const Exit exit =
        kernelpro({"new", "mine", "--output", join(dir.path(), "mine"), "--from", from});
    EXPECT_EQ(exit.code, 2) << exit.output;
    EXPECT_TRUE(contains(exit.output, "kernelpro optimize ")) << exit.output;
  }
}

TEST(New, Faults) {
  const TempDir dir;
  EXPECT_EQ(kernelpro({"new"}).code, 2);
  EXPECT_EQ(kernelpro({"new", "--from", join(dir.path(), "none.cu")}).code, 2);
  const std::string folder = join(dir.path(), "mine");
  EXPECT_EQ(kernelpro({"new", "mine", "--output", folder}).code, 0);
  const Exit again = kernelpro({"new", "mine", "--output", folder});
  EXPECT_EQ(again.code, 2);
  EXPECT_TRUE(contains(again.output, "not an empty folder")) << again.output;
}

TEST(Evaluate, OnTheCpuATaskNeedsNothingForAGpu) {
  const TempDir dir;
  const std::string example = std::string(KERNELPRO_SOURCE_DIR) + "/tests/tasks/relu";
  for (const char* name : {"task.toml", "reference.cpp", "kernel.cpp"}) {
    ASSERT_TRUE(write_file(join(dir.path(), name), *read_file(join(example, name), 1 << 20)));
  }
  const Exit exit =
      kernelpro({"evaluate", dir.path(), join(dir.path(), "kernel.cpp"), "--no-timing"});
  EXPECT_EQ(exit.code, 0) << exit.output;
}

TEST(Evaluate, KernelsOfTwoTargetsAreRefused) {
  const TempDir dir;
  for (const char* name : {"a.cu", "b.cpp", "c.txt"}) {
    ASSERT_TRUE(write_file(join(dir.path(), name), "x\n"));
  }
  const std::string task = std::string(KERNELPRO_SOURCE_DIR) + "/examples/softmax";
  const auto path = [&](const char* name) { return join(dir.path(), name); };
  EXPECT_EQ(kernelpro({"evaluate", task, path("a.cu"), path("b.cpp")}).code, 2);
  EXPECT_EQ(kernelpro({"evaluate", task, path("c.txt")}).code, 2);
  EXPECT_EQ(kernelpro({"evaluate", task, path("b.cpp"), "--target", "cuda"}).code, 2);
  EXPECT_EQ(kernelpro({"evaluate", task, path("b.cpp"), "--knob", "A"}).code, 2);
}

}  // namespace
}  // namespace kernelpro
