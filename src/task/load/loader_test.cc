// SPDX-License-Identifier: Apache-2.0
#include "task/load/loader.h"

#include <gtest/gtest.h>

#include "base/files.h"
#include "base/text.h"

namespace kernelpro {
namespace {

// A valid task; the tests below spoil one line each.
constexpr std::string_view kGood = R"([task]
name = "sum"
flops = "2*N"
workspace = "N*4"

[[tensor]]
name = "x"
role = "input"
dtype = "fp16"
shape = ["N", "(M+3)/4", 2]
init = { kind = "uniform", low = -1, high = 1.5 }

[[tensor]]
name = "y"
role = "output"
dtype = "fp32"
shape = []
tolerance = 1e-3

[[case]]
name = "small"
dims = { N = 33, M = 5 }
targets = ["cpu"]

[[case]]
name = "large"
dims = { N = 1024, M = 8 }
timed = true
)";

struct Spoiled {
  const char* from;
  const char* to;
  const char* message;  // all of it, after "dir/task.toml"
};

std::string failure(std::string_view text) {
  const auto task = parse_task(text, "dir/task.toml");
  return task ? "accepted" : task.error().message;
}

std::string spoil(const std::string& from, const std::string& to) {
  EXPECT_TRUE(contains(kGood, from)) << from;
  return replace_all(std::string(kGood), from, to);
}

TEST(ParseTask, ReadsEveryPart) {
  const auto task = parse_task(kGood, "dir/task.toml");
  ASSERT_TRUE(task) << task.error().text();
  EXPECT_EQ(task->name, "sum");
  EXPECT_EQ(task->folder, absolute("dir"));
  EXPECT_EQ(task->workspace, "N*4");
  ASSERT_EQ(task->tensors.size(), 2u);
  const Tensor& x = task->tensors[0];
  EXPECT_EQ(x.role, Role::kInput);
  EXPECT_EQ(x.dtype, DType::kFp16);
  EXPECT_EQ(x.shape, (std::vector<std::string>{"N", "(M+3)/4", "2"}));
  EXPECT_EQ(x.init.kind, Init::Kind::kUniform);
  EXPECT_EQ(x.init.a, -1);
  EXPECT_EQ(x.init.b, 1.5);
  EXPECT_TRUE(task->tensors[1].shape.empty());
  EXPECT_EQ(task->tensors[1].tolerance, 1e-3);
  ASSERT_EQ(task->cases.size(), 2u);
  EXPECT_EQ(task->cases[0].targets, std::vector<TargetKind>{TargetKind::kCpu});
  EXPECT_FALSE(task->cases[0].timed);
  EXPECT_TRUE(task->cases[1].timed);
  EXPECT_EQ(shaped_tensors(*task, task->cases[1])[0].shape,
            (std::vector<std::int64_t>{1024, 2, 2}));
}

TEST(ParseTask, FaultsNamePlaceAndCause) {
  const Spoiled faults[] = {
      {"name = \"sum\"", "name = sum", ":2:8: "},
      {"flops", "flop", ":3:1: [task] has no key \"flop\""},
      {"[task]", "[tusk]", ":1:2: task.toml has no key \"tusk\""},
      {"name = \"sum\"", "name = 7", ":2:8: name must be a string in quotes"},
      {"name = \"sum\"", "name = \"a/b\"", ":2:8: [task] has the name \"a/b\""},
      {"\"2*N\"", "\"2*Q\"",
       ":3:9: in the case small, the expression \"2*Q\" is wrong: the dimension "
       "Q is not given by the case"},
      {"\"2*N\"", "\"N-34\"", ":3:9: in the case small, flops is -1"},
      {"\"2*N\"", "1.5", ":3:9: flops must be an integer or an expression"},
      {"name = \"x\"", "name = \"int\"", ":7:8: a tensor cannot have the name \"int\""},
      {"name = \"x\"", "name = \"workspace\"", ":7:8: a tensor cannot have the name \"workspace\""},
      {"name = \"x\"", "name = \"y\"", ":14:8: the tensor y is declared twice"},
      {"name = \"x\"", "name = \"N\"", ":22:10: a dimension cannot have the name \"N\""},
      {"\"input\"", "\"in\"", ":8:8: unknown role \"in\""},
      {"\"fp16\"", "\"float\"", ":9:9: unknown dtype \"float\""},
      {"\"fp16\"", "\"int32\"", ":11:8: init of x: uniform draws fractions"},
      {"dtype = \"fp16\"\n", "", ":6:1: the tensor x lacks the key \"dtype\""},
      {"[\"N\", \"(M+3)/4\", 2]", "\"N\"", ":10:9: shape must be a list"},
      {"(M+3)/4", "(M+3/4", ":10:15: in the case small, the expression \"(M+3/4\" is wrong"},
      {"\"(M+3)/4\"", "\"M-5\"", ":10:15: in the case small, a dimension of x is 0"},
      {"\"(M+3)/4\"", "\"N*1000000000000000\"",
       ":10:15: in the case small, the tensor x has more than"},
      {"\"(M+3)/4\", 2", "4611686018427387904, 4",
       ":10:15: in the case small, the tensor x has more"},
      {"\"uniform\"", "\"gauss\"", ":11:17: unknown kind of init \"gauss\""},
      {"low = -1, ", "", ":11:8: init of kind uniform lacks the key \"low\""},
      {"low = -1", "mean = -1", ":11:28: init of kind uniform has no key \"mean\""},
      {"low = -1", "low = 2", ":11:8: init of x: low must be below high"},
      {"low = -1", "low = nan", ":11:34: low must be a finite number"},
      {"high = 1.5", "high = 1e5", ":11:8: init of x: 100000 does not fit fp16"},
      {"tolerance = 1e-3", "tolerance = 0", ":18:13: tolerance must lie between 0 and 1"},
      {"init = ", "tolerance = 1e-3\ninit = ", ":11:13: only floating-point outputs"},
      {"tolerance = 1e-3", "init = { kind = \"normal\" }", ":18:8: the output y has an init"},
      {"\"output\"", "\"input\"", ":18:13: only floating-point outputs"},
      {"N = 33", "N = 0", ":22:14: N is 0"},
      {"N = 33", "N = -3", ":22:14: N is -3"},
      {"N = 33", "N = 3.0", ":22:14: N must be an integer"},
      {"N = 33", "Q = 33", ":10:10: in the case small, the expression \"N\" is wrong"},
      {"N = 33", "Q = 1, N = 33", ":25:1: the case large does not give Q"},
      {"[\"cpu\"]", "[\"gpu\"]", ":23:12: unknown target \"gpu\""},
      {"[\"cpu\"]", "[]", ":23:11: targets must be a list"},
      {"[\"cpu\"]", "[\"cpu\", \"cpu\"]", ":23:19: the target cpu is listed twice"},
      {"\"large\"", "\"small\"", ":26:8: the case small is declared twice"},
      {"timed = true", "timed = 1", ":28:9: timed must be true or false"},
      {"timed = true", "", ": no case for the target cpu is timed"},
      {"timed = true", "timed = true\ntargets = [\"cuda\"]",
       ": no case for the target cpu is timed"},
  };
  for (const Spoiled& fault : faults) {
    const std::string message = failure(spoil(fault.from, fault.to));
    EXPECT_TRUE(message.starts_with("dir/task.toml" + std::string(fault.message)))
        << fault.from << " -> " << fault.to << "\n  " << message << "\n  " << fault.message;
  }
}

TEST(ParseTask, HeldOutCasesStandApart) {
  const std::string more =
      "timed = true\n[[case]]\nname = \"odd\"\ndims = { N = 77, M = 5 }\nheld_out = true\n";
  const auto task = parse_task(spoil("timed = true", more), "dir/task.toml");
  ASSERT_TRUE(task) << task.error().text();
  ASSERT_EQ(task->cases.size(), 2u) << "no search, compiler or prompt sees the third";
  ASSERT_EQ(task->held_out.size(), 1u);
  EXPECT_EQ(task->held_out[0].name, "odd");
  EXPECT_TRUE(task->held_out[0].timed);
  EXPECT_EQ(cases_for(*task, TargetKind::kCpu).size(), 2u);
  const std::vector<Task> alone = held_out_tasks(*task, TargetKind::kCpu);
  ASSERT_EQ(alone.size(), 1u);
  ASSERT_EQ(cases_for(alone[0], TargetKind::kCpu).size(), 1u);
  EXPECT_EQ(alone[0].cases[0].dims.at("N"), 77);
  EXPECT_TRUE(alone[0].held_out.empty());
  const auto kept = task_from_json(task_to_json(*task));
  ASSERT_TRUE(kept);
  EXPECT_EQ(kept->content_hash(), task->content_hash());
  EXPECT_EQ(kept->held_out.at(0).dims, task->held_out[0].dims);
  const auto without = parse_task(kGood, "dir/task.toml");
  EXPECT_NE(without->content_hash(), task->content_hash());
  EXPECT_FALSE(contains(task_to_json(*without), "held_out")) << "other tasks stay the same task";
}

TEST(ParseTask, FaultsOfHeldOutCases) {
  const std::string odd = "[[case]]\nname = \"odd\"\ndims = { N = 77, M = 5 }\nheld_out = true\n";
  const struct {
    std::string from, to, message;
  } faults[] = {
      {"timed = true", "held_out = true", ": no case for the target cpu is timed"},
      {"timed = true", "held_out = 1", ":28:12: held_out must be true or false"},
      {"timed = true", "timed = true\n" + odd + "timed = false",
       ":33:9: the held-out case odd is not timed"},
      {"name = \"large\"", "held_out = true\nname = \"small\"",
       ":27:8: the case small is declared twice"},
      {"timed = true", "timed = true\n[[case]]\nname = \"odd\"\nheld_out = true",
       ":29:1: the case odd does not give M"},
      {"timed = true", "timed = true\ntargets = [\"cpu\"]\n" + odd + "targets = [\"cuda\"]",
       ": for the target cuda there is only the held-out case odd"},
  };
  for (const auto& fault : faults) {
    const std::string message = failure(spoil(fault.from, fault.to));
    EXPECT_TRUE(message.starts_with("dir/task.toml" + fault.message))
        << fault.from << " -> " << fault.to << "\n  " << message << "\n  " << fault.message;
  }
  std::string all = replace_all(std::string(kGood), "timed = true", "held_out = true");
  all = replace_all(all, "targets = [\"cpu\"]", "held_out = true");
  EXPECT_TRUE(contains(failure(all), ": every case is held out")) << failure(all);
}

TEST(ParseTask, UnknownKeysSuggestTheNearestOne) {
  const auto task = parse_task(spoil("tolerance", "tollerance"), "t");
  ASSERT_FALSE(task);
  EXPECT_TRUE(contains(task.error().next, "did you mean \"tolerance\"?")) << task.error().next;
}

TEST(ParseTask, UnknownDtypeListsTheValidOnes) {
  const auto task = parse_task(spoil("\"fp16\"", "\"float\""), "t");
  ASSERT_FALSE(task);
  EXPECT_TRUE(contains(task.error().next, "fp32, fp16, bf16, int32, int64, bool"));
}

TEST(ParseTask, MissingSections) {
  EXPECT_EQ(failure(""), "dir/task.toml: the task has no [task] section");
  EXPECT_EQ(failure("[task]\nname = \"a\"\n"), "dir/task.toml: the task has no [[tensor]]");
  EXPECT_EQ(failure("task = 1\n"), "dir/task.toml:1:8: \"task\" must be a section");
  EXPECT_EQ(failure("[task]\nname = \"a\"\n[tensor]\n"),
            "dir/task.toml:3:1: \"tensor\" must be written as sections [[tensor]]");
  EXPECT_TRUE(contains(failure(spoil("\"output\"\ndtype = \"fp32\"\nshape = []\ntolerance = 1e-3",
                                     "\"parameter\"\ndtype = \"fp32\"\nshape = []")),
                       "the task has no output"));
}

TEST(ParseTask, MalformedBytesAreFaultsWithAPlace) {
  EXPECT_TRUE(failure("[[``]]\n").starts_with("dir/task.toml:1:3: "));
  EXPECT_TRUE(failure("x\xc3\xa9 = 1\n").starts_with("dir/task.toml:1:2: "))
      << failure("x\xc3\xa9 = 1\n");
  EXPECT_TRUE(failure("\xef\xbb\xbd# no byte order mark\n").starts_with("dir/task.toml:1:"));
  EXPECT_TRUE(failure("a = \"\xff\"\n").starts_with("dir/task.toml:1:"));
  EXPECT_TRUE(failure(std::string("a = 1\0", 6)).starts_with("dir/task.toml:1:"));
  EXPECT_TRUE(failure("a = " + std::string(100000, '[')).starts_with("dir/task.toml:1:"));
}

TEST(ParseTask, InitsOfIntegersAndBools) {
  const auto with = [](const char* dtype, const char* init) {
    return failure(replace_all(spoil("\"fp16\"", "\"" + std::string(dtype) + "\""),
                               "init = { kind = \"uniform\", low = -1, high = 1.5 }", init));
  };
  EXPECT_EQ(with("int32", "init = { kind = \"integers\", low = -5, high = 5 }"), "accepted");
  EXPECT_EQ(with("int64", "init = { kind = \"constant\", value = 7 }"), "accepted");
  EXPECT_EQ(with("bool", "init = { kind = \"bernoulli\", p = 0.25 }"), "accepted");
  EXPECT_EQ(with("bool", ""), "accepted");
  EXPECT_EQ(with("bf16", ""), "accepted");
  EXPECT_TRUE(contains(with("int32", ""), "has no init"));
  EXPECT_TRUE(contains(with("bool", "init = { kind = \"integers\", low = 0, high = 2 }"),
                       "2 does not fit bool"));
  EXPECT_TRUE(contains(with("int32", "init = { kind = \"integers\", low = 0, high = 3000000000 }"),
                       "does not fit int32"));
  EXPECT_TRUE(contains(with("int64", "init = { kind = \"integers\", low = 0.5, high = 3 }"),
                       "whole numbers"));
  EXPECT_TRUE(contains(with("fp32", "init = { kind = \"bernoulli\", p = 2 }"), "between 0 and 1"));
  EXPECT_TRUE(contains(with("fp32", "init = { kind = \"normal\", std = 0 }"), "above 0"));
}

class TaskFolder : public ::testing::Test {
 protected:
  void SetUp() override {
    write("task.toml", kGood);
    write("reference.cpp", "// cpp");
    write("reference.cu", "// cu");
  }
  void write(const std::string& name, std::string_view text) {
    ASSERT_TRUE(write_file(join(dir_.path(), name), text));
  }
  std::string failure() {
    const auto task = load_task(dir_.path());
    return task ? "accepted" : replace_all(task.error().message, dir_.path(), "DIR");
  }
  void remove(const std::string& name) { std::remove(join(dir_.path(), name).c_str()); }

  TempDir dir_;
};

TEST_F(TaskFolder, LoadsTextsAndLeavesMissingKernelsEmpty) {
  write("kernel.cpp", "// kernel\r\n");
  const auto task = load_task(dir_.path());
  ASSERT_TRUE(task) << task.error().text();
  EXPECT_EQ(task->reference_cpp, "// cpp");
  EXPECT_EQ(task->reference_cu, "// cu");
  EXPECT_EQ(task->kernel_cpp, "// kernel\r\n");
  EXPECT_EQ(task->kernel_cu, "");
}

TEST_F(TaskFolder, NamesWhatIsMissing) {
  remove("reference.cu");
  EXPECT_EQ(failure(), "DIR/reference.cu is missing");
  EXPECT_TRUE(load_task(dir_.path(), true)) << "on the CPU nobody asks for it";
  write("task.toml", spoil("timed = true", "timed = true\ntargets = [\"cpu\"]"));
  EXPECT_EQ(failure(), "accepted");
  remove("reference.cpp");
  EXPECT_EQ(failure(), "DIR/reference.cpp is missing");
  remove("task.toml");
  EXPECT_EQ(failure(), "DIR has no task.toml");
  EXPECT_EQ(load_task("/nonexistent/task").error().message,
            "there is no task folder /nonexistent/task");
}

TEST_F(TaskFolder, RefusesBytesThatAreNoText) {
  write("kernel.cpp", "int x = 1; // \xff\xfe");
  EXPECT_EQ(failure(), "DIR/kernel.cpp is not valid UTF-8 text");
  write("kernel.cpp", " \n");
  EXPECT_EQ(failure(), "DIR/kernel.cpp is empty");
}

TEST(Examples, LoadAndNameTheirKnobs) {
  for (const char* name : {"softmax", "layernorm", "matmul"}) {
    const auto task = load_task(std::string(KERNELPRO_SOURCE_DIR) + "/examples/" + name);
    ASSERT_TRUE(task) << task.error().text();
    EXPECT_EQ(task->name, name);
    EXPECT_FALSE(task->kernel_cpp.empty());
    EXPECT_FALSE(task->kernel_cu.empty());
    EXPECT_EQ(cases_for(*task, TargetKind::kCpu).size(), 2u);
    EXPECT_EQ(cases_for(*task, TargetKind::kCuda).size(), 2u);
  }
}

}  // namespace
}  // namespace kernelpro
