// SPDX-License-Identifier: Apache-2.0
// The worker of PyTorch candidates in host form (python/kernelpro_torch/candidate.py) on the CPU:
// real Python, real shared memory, the verbs of core/plan/protocol.h. The test is the judge: it
// reveals a set on the stage and gives the order.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>

#include "base/files.h"
#include "base/json.h"
#include "base/process/gate.h"
#include "base/process/sandbox.h"
#include "base/process/subprocess.h"
#include "base/text.h"
#include "task/reference/module_reference.h"
#include "task/reference/python.h"

namespace kernelpro {
namespace {

constexpr int kRows = 8, kIn = 6, kOut = 4;
constexpr int kSets = 2;
constexpr double kPatience = 100;  // seconds
constexpr std::uint64_t kSlotBytes = 4096;

constexpr const char* kTask = R"(
import torch, torch.nn as nn
N = 8
class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.linear = nn.Linear(width, 4)
    def forward(self, x):
        return torch.relu(self.linear(x))
def get_inputs():
    return [torch.rand(N, 6)]
def get_init_inputs():
    return [6]
)";

std::string model_new(const std::string& forward, const std::string& before = "",
                      const std::string& layer = "linear") {
  std::string text = "import torch, torch.nn as nn\n" + before +
                     "\nclass ModelNew(nn.Module):\n"
                     "    def __init__(self, width):\n"
                     "        super().__init__()\n"
                     "        self." +
                     layer +
                     " = nn.Linear(width, 4)\n"
                     "    def forward(self, x):\n";
  for (const std::string& line : lines(forward)) text += "        " + line + "\n";
  return text;
}

class SharedFloats {
 public:
  SharedFloats() : fd_(::memfd_create("tensor", 0)) {
    EXPECT_EQ(::ftruncate(fd_.get(), kSlotBytes), 0);
    values = static_cast<float*>(
        ::mmap(nullptr, kSlotBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd_.get(), 0));
  }
  SharedFloats(const SharedFloats&) = delete;
  SharedFloats& operator=(const SharedFloats&) = delete;
  ~SharedFloats() { ::munmap(values, kSlotBytes); }
  int fd() const { return fd_.get(); }
  float* values;

 private:
  Fd fd_;
};

struct Set {
  SharedFloats x, weight, bias, out;
  double wrong() const {
    double worst = 0;
    for (int i = 0; i < kRows; ++i) {
      for (int j = 0; j < kOut; ++j) {
        double sum = bias.values[j];
        for (int k = 0; k < kIn; ++k)
          sum += double{x.values[i * kIn + k]} * weight.values[j * kIn + k];
        worst = std::max(worst, std::fabs(std::max(sum, 0.0) - out.values[i * kOut + j]));
      }
    }
    return worst;
  }
};

class CandidateTest : public ::testing::Test {
 protected:
  // Importing torch takes seconds: one process serves all tests, as `open` discards old state.
  static void SetUpTestSuite() {
    folder_ = std::make_unique<TempDir>();
    const auto python = python_command("candidate");
    if (!python) return;
    Command command;
    command.argv = python->argv;
    command.argv.push_back("cpu");
    command.env = python->env;
    for (const char* name : {"KERNELPRO_BUILDS=", "TMPDIR=", "HOME="}) {
      command.env.push_back(name + folder_->path());
    }
    // As the evaluator runs it.
    const auto facts = find_python("");
    std::vector<std::string> roots =
        facts ? candidate_roots(*facts) : program_roots(python->argv[0]);
    roots.push_back(cache_dir());
    command.sandbox = candidate_python_sandbox(folder_->path(), roots);
    auto child = Child::start(command);
    ASSERT_TRUE(child);
    child_ = std::move(*child);
  }
  static void TearDownTestSuite() {
    child_ = Child();
    folder_.reset();
  }

  void SetUp() override {
    if (!find_python("")) GTEST_SKIP() << "PyTorch is not installed";
    for (int s = 0; s < kSets; ++s) {
      float* const tensors[] = {sets_[s].x.values, sets_[s].weight.values, sets_[s].bias.values};
      const int counts[] = {kRows * kIn, kOut * kIn, kOut};
      for (int t = 0; t < 3; ++t) {
        for (int i = 0; i < counts[t]; ++i)
          tensors[t][i] = static_cast<float>(std::sin(0.7 * (i + 1) + t + 3.0 * s));
      }
    }
    open();
  }

  void open() {
    const auto tensor = [](const char* name, const char* label, const char* role, Json shape) {
      return Json{
          {"name", name}, {"label", label}, {"role", role}, {"dtype", "fp32"}, {"shape", shape}};
    };
    Json slots = Json::array();
    for (std::uint64_t i = 0; i < 4; ++i) {
      slots.push_back({i << 16, kSlotBytes, i << 16, kSlotBytes});
    }
    expect_ok(ask(
        {{"do", "open"},
         {"cases",
          Json::array({{{"case", "full"},
                        {"layout", {{"slots", slots}, {"has_workspace", false}}},
                        {"sets", 1},
                        {"dims", {{"N", kRows}}},
                        {"tensors",
                         Json::array({tensor("x", "", "input", {kRows, kIn}),
                                      tensor("w", "linear.weight", "parameter", {kOut, kIn}),
                                      tensor("linear_bias", "", "parameter", Json::array({kOut})),
                                      tensor("out", "", "output", {kRows, kOut})})}}})}}));
    expect_ok(ask({{"do", "memory"}, {"case", "full"}, {"slots", {0, 1, 2, 3}}},
                  {stage_.x.fd(), stage_.weight.fd(), stage_.bias.fd(), stage_.out.fd()}));
    auto gate = Gate::make();
    ASSERT_TRUE(gate);
    gate_ = std::move(*gate);
    expect_ok(ask({{"do", "gate"}}, {gate_.fd()}));
  }

  Json ask(const Json& message, const std::vector<int>& fds = {}) {
    if (!child_.send(dump_json(message), fds)) return {{"error", "the child is gone"}};
    return answer();
  }
  Json answer() {
    const std::optional<Frame> frame = child_.receive(120);
    if (!frame) return {{"error", "lost: " + child_.finish().output}};
    return parse_json(frame->bytes).value_or(Json());
  }
  static void expect_ok(const Json& answer) { EXPECT_TRUE(answer.contains("ok")) << answer; }

  Json load(const std::string& source, const std::string& policy = "contract") {
    const std::string path = join(folder_->path(), "candidate.py");
    EXPECT_TRUE(write_file(path, source));
    return ask({{"do", "load"},
                {"case", "full"},
                {"subject", "candidate"},
                {"module", path},
                {"task_source", kTask},
                {"task_path", "task.py"},
                {"precision", "fp32"},
                {"policy", policy}});
  }
  // A turn on a set, as the judge takes it; its outputs then lie in the set. An answer without its
  // sign is an error too.
  Json turn(Set& set, const char* verb = "call") {
    const std::uint64_t number = ++turns_;
    EXPECT_TRUE(child_.send(
        dump_json({{"do", verb}, {"case", "full"}, {"subject", "candidate"}, {"turn", number}})));
    for (float* values : {stage_.x.values, stage_.weight.values, stage_.bias.values}) {
      std::fill_n(values, kSlotBytes / 4, 7e7f);
    }
    std::fill_n(stage_.out.values, kRows * kOut, 9e9f);
    EXPECT_TRUE(gate_.await(Sign::kReady, number, kPatience)) << "it does not wait for the order";
    const auto copy = [](const SharedFloats& from, SharedFloats& to) {
      std::memcpy(to.values, from.values, kSlotBytes);
    };
    copy(set.x, stage_.x);
    copy(set.weight, stage_.weight);
    copy(set.bias, stage_.bias);
    gate_.give(Sign::kOrder, number);
    const Json answered = answer();
    copy(stage_.out, set.out);
    gate_.give(Sign::kOver, number);
    if (answered.contains("ok") && !gate_.await(Sign::kAnswer, number, 0)) {
      return {{"error", "it gave no sign"}};
    }
    return answered;
  }
  Json check() {
    Json last;
    for (int i = 0; i < 4; ++i) {
      last = turn(sets_[i % kSets]);
      if (!last.contains("ok")) break;
    }
    return last;
  }
  std::string rule_of(const std::string& source) {
    Json answer = load(source);
    if (answer.contains("ok")) answer = check();
    return answer.contains("ok") ? "" : JsonReader(answer).text("rule", "crashed");
  }

  static inline std::unique_ptr<TempDir> folder_;
  static inline Child child_;
  static inline std::uint64_t turns_ = 0;
  Gate gate_;
  Set stage_;
  Set sets_[kSets];
};

TEST_F(CandidateTest, RightOnesComputeFromTheJudgesBuffers) {
  expect_ok(load(model_new("return torch.relu(self.linear(x))")));
  expect_ok(check());
  for (const Set& set : sets_) EXPECT_LT(set.wrong(), 1e-5);
}

TEST_F(CandidateTest, APingIsATurnWithoutACall) {
  const Json pinged = turn(sets_[0], "ping");
  expect_ok(pinged);
  EXPECT_GT(pinged["us"].get<double>(), 0);
}

// What a result leaves undone is done before the answer, whatever the result is.
TEST_F(CandidateTest, ResultsAreCopiedBeforeTheAnswer) {
  const std::string later =
      "class Later(list):\n"
      "    def __iter__(self):\n"
      "        self.work()\n"
      "        return super().__iter__()\n";
  for (const char* result :
       {"y.t().contiguous().t()", "[y]", "(y,)", "{'out': y}", "y.requires_grad_()"}) {
    expect_ok(load(model_new("y = torch.relu(self.linear(x))\nreturn " + std::string(result))));
    expect_ok(check());
    for (const Set& set : sets_) EXPECT_LT(set.wrong(), 1e-5) << result;
  }
  expect_ok(
      load(model_new("y = torch.empty(8, 4)\n"
                     "result = Later([y])\n"
                     "result.work = lambda: y.copy_(torch.relu(self.linear(x)))\n"
                     "return result",
                     later)));
  expect_ok(check());
  for (const Set& set : sets_) EXPECT_LT(set.wrong(), 1e-5);
}

// Parameters follow the stage, also where others share their memory or they have other strides.
TEST_F(CandidateTest, ParametersFollowTheStage) {
  const std::string head =
      "class Layer(nn.Linear):\n"
      "    def __init__(self, width, out):\n"
      "        super().__init__(width, out)\n"
      "        ";
  const auto with_layer = [&](const std::string& forward, const std::string& then) {
    return replace_all(model_new(forward, head + then + "\n"), "nn.Linear(width, 4)",
                       "Layer(width, 4)");
  };
  for (const std::string& source :
       {with_layer("return torch.relu(x @ self.linear.flat.view(4, 6).t() + self.linear.bias)",
                   "self.__dict__['flat'] = self.weight.data.view(-1)"),
        with_layer("return torch.relu(self.linear(x))",
                   "self.weight.data = self.weight.data.t().contiguous().t()")}) {
    expect_ok(load(source));
    expect_ok(check());
    for (const Set& set : sets_) EXPECT_LT(set.wrong(), 1e-5);
  }
}

TEST_F(CandidateTest, ResultsThatAreNoPlainTensorsAreRefusedByName) {
  EXPECT_EQ(rule_of(model_new("return 5")), "not-a-tensor");
  const std::string right = "torch.relu(self.linear(x))";
  for (const std::string& promise :
       {"torch._neg_view(-" + right + ")", std::string("torch._efficientzerotensor((8, 4))"),
        "torch._to_functional_tensor(" + right + ")", right + ".to_sparse()",
        right + ".to_mkldnn()"}) {
    EXPECT_EQ(rule_of(model_new("return " + promise)), "not-a-tensor") << promise;
  }
  EXPECT_EQ(rule_of(model_new("return Lazy(torch.relu(self.linear(x)))",
                              "class Lazy(torch.Tensor):\n    pass\n")),
            "not-a-tensor");
  EXPECT_EQ(rule_of(model_new("return torch.relu(self.linear(x))[:4]")), "output-shape");
  EXPECT_EQ(rule_of(model_new("return torch.relu(self.linear(x)).double()")), "output-type");
}

// The same memory holds another set in the next turn.
TEST_F(CandidateTest, AResultThatIsKeptIsNoLongerRight) {
  for (const char* keeper : {"kept", "self.__dict__.setdefault('kept', {})"}) {
    expect_ok(load(model_new(std::string("kept_here = ") + keeper +
                                 "\nkey = x.data_ptr()\n"
                                 "if key not in kept_here:\n"
                                 "    kept_here[key] = torch.relu(self.linear(x))\n"
                                 "return kept_here[key]\n",
                             "import sys\nkept = sys.__dict__.setdefault('kept', {})\n"
                             "kept.clear()\n")));
    expect_ok(turn(sets_[0]));
    expect_ok(turn(sets_[1]));
    EXPECT_LT(sets_[0].wrong(), 1e-5);
    EXPECT_GT(sets_[1].wrong(), 1e-3) << keeper;
  }
}

TEST_F(CandidateTest, AnInputMayBeReturned) {
  EXPECT_EQ(rule_of(model_new("return self.linear.weight")), "output-shape");
  expect_ok(load(model_new("return x[:, :4].contiguous()")));
  expect_ok(check());
  EXPECT_EQ(sets_[0].out.values[0], sets_[0].x.values[0]);
}

TEST_F(CandidateTest, FaultsTellWhereTheyAre) {
  Json answer = load(model_new("return x +"));
  EXPECT_EQ(JsonReader(answer).text("rule"), "compile");
  EXPECT_TRUE(contains(JsonReader(answer).text("error"), "candidate.py")) << answer;
  answer = load("import torch\n");
  EXPECT_EQ(JsonReader(answer).text("rule"), "compile");
  EXPECT_TRUE(contains(JsonReader(answer).text("error"), "ModelNew")) << answer;
  expect_ok(load(model_new("raise ValueError('boom')")));
  answer = check();
  EXPECT_FALSE(answer.contains("rule"));
  EXPECT_TRUE(JsonReader(answer).text("error").starts_with("ValueError: boom")) << answer;
  EXPECT_FALSE(contains(JsonReader(answer).text("error"), "kernelpro_torch")) << answer;
  expect_ok(load(model_new("import sys\nsys.exit(0)")));
  EXPECT_TRUE(contains(JsonReader(check()).text("error"), "SystemExit"));
  // The process survives.
  expect_ok(load(model_new("return torch.relu(self.linear(x))")));
  expect_ok(check());
}

TEST_F(CandidateTest, ParametersOfOtherNamesAreSaid) {
  const Json answer = load(model_new("return torch.relu(self.mine(x))", "", "mine"));
  expect_ok(answer);
  ASSERT_EQ(answer["notes"].size(), 1u) << answer;
  EXPECT_TRUE(contains(answer["notes"][0].get<std::string>(), "linear.weight")) << answer;
}

// KernelBench's harness runs both files in one namespace.
TEST_F(CandidateTest, NamesOfTheTaskAreThereUnderKernelBenchsPolicyOnly) {
  const std::string source = replace_all(model_new("return torch.relu(self.linear(x))"),
                                         "import torch, torch.nn as nn\n", "");
  EXPECT_EQ(JsonReader(load(source)).text("rule"), "compile");
  expect_ok(load(source, "kernelbench"));
  expect_ok(check());
  EXPECT_LT(sets_[1].wrong(), 1e-5);
}

TEST_F(CandidateTest, WhatItPrintsIsNotAnAnswer) {
  expect_ok(
      load(model_new("print('{\"ok\": true}', flush=True)\n"
                     "import os\n"
                     "try:\n    os.write(3, b'\\x02\\0\\0\\0{}')\n"
                     "except OSError:\n    pass\n"
                     "return torch.relu(self.linear(x))")));
  expect_ok(check());
  EXPECT_LT(sets_[0].wrong(), 1e-5);
}

}  // namespace
}  // namespace kernelpro
