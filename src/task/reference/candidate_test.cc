// SPDX-License-Identifier: Apache-2.0
// The worker of PyTorch candidates (python/kernelpro_torch/candidate.py) on the CPU: real Python,
// real shared memory, the verbs of core/protocol.h.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "base/files.h"
#include "base/process/sandbox.h"
#include "base/process/subprocess.h"
#include "base/text.h"
#include "core/json.h"
#include "task/reference/module_reference.h"
#include "task/reference/python.h"

namespace kernelpro {
namespace {

constexpr int kRows = 8, kIn = 6, kOut = 4;
constexpr int kSets = 2;
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
    std::vector<std::string> roots = program_roots(python->argv[0]);
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
                        {"sets", kSets},
                        {"dims", {{"N", kRows}}},
                        {"tensors",
                         Json::array({tensor("x", "", "input", {kRows, kIn}),
                                      tensor("w", "linear.weight", "parameter", {kOut, kIn}),
                                      tensor("linear_bias", "", "parameter", Json::array({kOut})),
                                      tensor("out", "", "output", {kRows, kOut})})}}})}}));
    for (int s = 0; s < kSets; ++s) {
      const Set& set = sets_[s];
      expect_ok(ask({{"do", "memory"}, {"case", "full"}, {"set", s}, {"slots", {0, 1, 2, 3}}},
                    {set.x.fd(), set.weight.fd(), set.bias.fd(), set.out.fd()}));
    }
  }

  Json ask(const Json& message, const std::vector<int>& fds = {}) {
    if (!child_.send(dump_json(message), fds)) return {{"error", "the child is gone"}};
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
  // Both sets, alternating, so that each is audited for escaped work once.
  Json check() {
    for (Set& set : sets_) std::fill_n(set.out.values, kRows * kOut, 9e9f);
    Json steps = Json::array();
    for (int i = 0; i < 6; ++i) steps.push_back({{"set", (i / 2) % kSets}, {"key", 17 * i}});
    return ask({{"do", "run"}, {"case", "full"}, {"subject", "candidate"}, {"steps", steps}});
  }
  std::string rule_of(const std::string& source) {
    Json answer = load(source);
    if (answer.contains("ok")) answer = check();
    return answer.contains("ok") ? "" : JsonReader(answer).text("rule", "crashed");
  }

  static inline std::unique_ptr<TempDir> folder_;
  static inline Child child_;
  Set sets_[kSets];
};

TEST_F(CandidateTest, RightOnesComputeFromTheJudgesBuffers) {
  expect_ok(load(model_new("return torch.relu(self.linear(x))")));
  expect_ok(check());
  for (const Set& set : sets_) EXPECT_LT(set.wrong(), 1e-5);
}

TEST_F(CandidateTest, TimesComeForTimedStepsAndOutputsLieInTheSets) {
  expect_ok(load(model_new("return torch.relu(self.linear(x))")));
  for (Set& set : sets_) std::fill_n(set.out.values, kRows * kOut, 9e9f);
  const Json answer = ask({{"do", "time"},
                           {"case", "full"},
                           {"key", 5},
                           {"reload", {"candidate"}},
                           {"steps",
                            {{{"subject", "candidate"}, {"set", 0}, {"timed", false}},
                             {{"subject", "candidate"}, {"set", 1}, {"timed", true}}}}});
  expect_ok(answer);
  ASSERT_EQ(answer["times"].size(), 2u);
  EXPECT_TRUE(answer["times"][0].is_null());
  EXPECT_GT(answer["times"][1].get<double>(), 0);
  for (const Set& set : sets_) EXPECT_LT(set.wrong(), 1e-5);
}

TEST_F(CandidateTest, ALoopLeavesItsResultsInTheSets) {
  expect_ok(load(model_new("return torch.relu(self.linear(x))")));
  for (Set& set : sets_) std::fill_n(set.out.values, kRows * kOut, 9e9f);
  const auto loop = [&](const char* subject) {
    return ask({{"do", "loop"}, {"case", "full"}, {"subject", subject}, {"sets", {1, 0}}});
  };
  const Json answer = loop("candidate");
  expect_ok(answer);
  EXPECT_GT(answer["submitted_us"].get<double>(), 0);
  for (const Set& set : sets_) EXPECT_LT(set.wrong(), 1e-5);
  expect_ok(loop(""));
  for (const Set& set : sets_) EXPECT_EQ(set.out.values[0], 0);
}

// A candidate cannot list the process's objects that hold other sets.
TEST_F(CandidateTest, OurObjectsAreNotListed) {
  expect_ok(
      load(model_new("names = [type(o).__name__ for o in gc.get_objects()]\n"
                     "assert 'OpenCase' not in names and 'CpuMapping' not in names\n"
                     "return torch.relu(self.linear(x))",
                     "import gc")));
  expect_ok(check());
}

TEST_F(CandidateTest, ReplacedFunctionsAreNoticed) {
  const std::string find = "import sys\nside = sys.modules['kernelpro_torch.candidate']\n";
  for (const char* patch :
       {"real = side.Candidate._timed\n"
        "side.Candidate._timed = lambda *a: real(*a) / 3\n",
        "side.devices._clock = lambda: 0\n",
        "side.Candidate._bind.__code__ = (lambda *a: []).__code__\n", "side._SETTLE_US = 1e9\n",
        "side.memory.ctypes = None\n",
        "import builtins\nreal = zip\n"
        "builtins.zip = lambda *a: real(*a)\n",
        "sys.setprofile(lambda *a: None)\n", "import gc\ngc.callbacks.append(lambda *a: None)\n"}) {
    EXPECT_EQ(rule_of(model_new("return torch.relu(self.linear(x))")), "");
    EXPECT_EQ(rule_of(model_new("return torch.relu(self.linear(x))", find + patch)),
              "patched-worker");
    // The replacement is permanent: the other tests get a new process.
    TearDownTestSuite();
    SetUpTestSuite();
    open();
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

// Parameters are written before the clock starts: no code of the candidate may run then.
TEST_F(CandidateTest, ParametersThatRunCodeWhenTheyAreWrittenAreRefused) {
  const std::string before =
      "class Mine(nn.Parameter):\n"
      "    pass\n"
      "class Layer(nn.Linear):\n"
      "    def __init__(self, width, out):\n"
      "        super().__init__(width, out)\n"
      "        self.weight.__class__ = TYPE\n";
  const std::string source = replace_all(model_new("return torch.relu(self.linear(x))", before),
                                         "nn.Linear(width, 4)", "Layer(width, 4)");
  EXPECT_EQ(rule_of(replace_all(source, "TYPE", "nn.Parameter")), "");
  EXPECT_EQ(rule_of(replace_all(source, "TYPE", "Mine")), "not-a-tensor");
  // Nor what the type itself was given.
  const std::string property =
      "import sys\n"
      "ran, get = sys.__dict__.setdefault('ran', []), torch.Tensor.data\n"
      "def read(p):\n"
      "    ran.append(sys._getframe(1).f_code.co_name)\n"
      "    return get.__get__(p)\n"
      "nn.Parameter.data = property(read, lambda p, value: get.__set__(p, value))\n";
  expect_ok(
      load(model_new("p = self.linear.weight\n"
                     "assert p.data is not None and 'forward' in ran\n"
                     "assert 'bind' not in ran\n"
                     "return torch.relu(self.linear(x))",
                     property)));
  expect_ok(check());
  expect_ok(load(model_new("return torch.relu(self.linear(x))", "del nn.Parameter.data\n")));
}

TEST_F(CandidateTest, WorkThatGoesOnAfterTheCallIsAnEscape) {
  EXPECT_EQ(rule_of(model_new("out = torch.empty(8, 4)\n"
                              "def work():\n"
                              "    time.sleep(0.0004)\n"
                              "    out.copy_(torch.relu(self.linear(x)))\n"
                              "threading.Thread(target=work).start()\n"
                              "return out\n",
                              "import threading, time\n")),
            "stream-escape");
  // If late on a busy machine, that thread would read memory that the next test has remapped.
  rule_of(
      model_new("for t in threading.enumerate():\n"
                "    if t is not threading.current_thread() and not t.daemon: t.join()\n"
                "return torch.relu(self.linear(x))\n",
                "import threading\n"));
}

// An audited call gets its inputs in other memory. (On a GPU they also arrive late.)
TEST_F(CandidateTest, WorkThatCountsOnOldMemoryIsAnEscape) {
  EXPECT_EQ(rule_of(model_new("if not seen: seen.append(x.data_ptr())\n"
                              "if x.data_ptr() not in seen: return torch.zeros(8, 4)\n"
                              "return torch.relu(self.linear(x))",
                              "import sys\nseen = sys.__dict__.setdefault('seen', [])\n")),
            "stream-escape");
}

TEST_F(CandidateTest, AResultThatIsKeptIsNoLongerRight) {
  const Json step = {{"subject", "candidate"}, {"set", 1}, {"timed", true}};
  for (const char* keeper : {"kept", "self.__dict__.setdefault('kept', {})"}) {
    expect_ok(load(model_new(std::string("kept_here = ") + keeper +
                                 "\nkey = x.data_ptr()\n"
                                 "if key not in kept_here:\n"
                                 "    kept_here[key] = torch.relu(self.linear(x))\n"
                                 "return kept_here[key]\n",
                             "import sys\nkept = sys.__dict__.setdefault('kept', {})\n")));
    expect_ok(ask({{"do", "time"}, {"case", "full"}, {"key", 5}, {"steps", {step, step}}}));
    EXPECT_GT(sets_[1].wrong(), 1.0) << "the first call's result was kept and right: " << keeper;
  }
}

// A module may return its own tensors: that memory is not overwritten.
TEST_F(CandidateTest, WhatTheModuleHoldsStays) {
  expect_ok(load(replace_all(model_new("return self.table"), "self.linear = nn.Linear(width, 4)",
                             "self.table = torch.ones(8, 4)")));
  const Json step = {{"subject", "candidate"}, {"set", 0}, {"timed", true}};
  expect_ok(ask({{"do", "time"}, {"case", "full"}, {"key", 5}, {"steps", {step, step, step}}}));
  EXPECT_EQ(sets_[0].out.values[5], 1.0f);
}

TEST_F(CandidateTest, ReturningAnInputLeavesItAsItIs) {
  const float before = sets_[0].weight.values[0];
  EXPECT_EQ(rule_of(model_new("return self.linear.weight")), "output-shape");
  expect_ok(load(model_new("return x[:, :4].contiguous()")));
  expect_ok(check());
  EXPECT_EQ(sets_[0].weight.values[0], before);
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
