// SPDX-License-Identifier: Apache-2.0
// PyTorch modules as references of the cpu target, with real Python, compilers and processes.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "base/text.h"
#include "core/evaluation/label.h"
#include "measure/cpu/evaluator.h"
#include "measure/cpu/testing.h"
#include "measure/judge/probes.h"

namespace kernelpro {
namespace {

constexpr const char* kRelu =
    "import torch\n"
    "class Model(torch.nn.Module):\n"
    "    def forward(self, x):\n"
    "        return torch.relu(x)\n"
    "def get_inputs():\n"
    "    return [torch.rand(64, 33)]\n"
    "def get_init_inputs():\n"
    "    return []\n";

// `forward` of x and the weight w of a 24 x 33 layer without bias.
std::string linear(const std::string& forward) {
  return "import torch\n"
         "class Model(torch.nn.Module):\n"
         "    def __init__(self):\n"
         "        super().__init__()\n"
         "        self.layer = torch.nn.Linear(33, 24, bias=False)\n"
         "    def forward(self, x):\n"
         "        w = self.layer.weight\n"
         "        return " +
         forward +
         "\n"
         "def get_inputs():\n"
         "    return [torch.randn(64, 33)]\n"
         "def get_init_inputs():\n"
         "    return []\n";
}

std::string launch(const std::string& body, const std::string& top = "") {
  return "#include \"task.h\"\n#include <cstring>\n" + top +
         "\nextern \"C\" void launch(const Args& a) {\n" + body + "\n}\n";
}

Task task_of(const ModuleDescription& description, const std::string& source) {
  Task task;
  task.name = "module";
  task.module = Module{"/module.py", source, ""};
  Case c;
  c.name = "only";
  c.timed = true;
  for (const ModuleDescription::Item& item : description.items) {
    Tensor tensor;
    tensor.name = item.name;
    tensor.role = item.role;
    tensor.dtype = item.dtype;
    tensor.init.kind = Init::Kind::kModule;
    task.tensors.push_back(tensor);
    c.shapes.push_back(item.shape);
  }
  task.cases = {c};
  return task;
}

class CpuModule : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    ReferenceSettings settings;
    settings.target = TargetKind::kCpu;
    auto module = ModuleReference::start(settings);
    if (!module) return;
    // The first command shows whether PyTorch is available.
    if (!(*module)->describe(kRelu, "/relu.py", {})) return;
    module_ = std::move(*module);
  }
  static void TearDownTestSuite() { module_.reset(); }
  void SetUp() override {
    if (!module_) GTEST_SKIP() << "PyTorch is not installed";
  }

  Result<void> prepare(const std::string& source, Policy policy = Policy::kContract) {
    const auto description = module_->describe(source, "/module.py", {});
    if (!description) return tl::unexpected<Error>(description.error());
    task_ = task_of(*description, source);
    task_.cases[0].matmul_flops = matmul_flops_;
    auto compiler = make_cpu_compiler(testing::compile_settings(cache_.path()));
    if (!compiler) return tl::unexpected<Error>(compiler.error());
    compiler_ = std::move(*compiler);
    EvaluateSettings settings;
    settings.timeout_s = 60;
    settings.samples = 6;
    settings.module = module_;
    settings.policy = policy;
    auto evaluator = make_cpu_evaluator(task_, Machine{}, settings);
    if (!evaluator) return tl::unexpected<Error>(evaluator.error());
    evaluator_ = std::move(*evaluator);
    return evaluator_->prepare({});
  }
  void expect_refused(const std::string& source, const std::string& words) {
    const Result<void> prepared = prepare(source);
    ASSERT_FALSE(prepared) << words;
    EXPECT_EQ(prepared.error().kind, ErrorKind::kTask);
    EXPECT_TRUE(contains(prepared.error().message, words)) << prepared.error().text();
  }
  Evaluation evaluate(const std::string& kernel) {
    Candidate candidate;
    candidate.source = kernel;
    CompileResult built = compiler_->compile(task_, task_.cases[0], candidate);
    EXPECT_TRUE(built) << built.error().text();
    const auto* error = std::get_if<CompileError>(&*built);
    EXPECT_EQ(error, nullptr) << error->log;
    Subject subject;
    subject.hash = candidate.content_hash();
    subject.binaries = {std::get<Binary>(*built)};
    Result<Evaluation> evaluation = evaluator_->evaluate(subject, nullptr);
    EXPECT_TRUE(evaluation) << evaluation.error().text();
    return *evaluation;
  }
  static bool labelled(const Evaluation& evaluation, Label label) {
    return evaluation.correct() != nullptr && has_label(*evaluation.correct(), label);
  }

  static inline std::shared_ptr<ModuleReference> module_;
  double matmul_flops_ = 0;
  TempDir cache_;
  Task task_;
  std::unique_ptr<Compiler> compiler_;
  std::unique_ptr<Evaluator> evaluator_;
};

// A reference without a process.
struct NoReference : ModuleReference {
  Result<ModuleDescription> describe(const std::string&, const std::string&,
                                     const std::map<std::string, std::int64_t>&) override {
    return ModuleDescription();
  }
  Result<void> attach(const Task&, const Case&, int, const std::vector<SharedBuffer>&) override {
    return {};
  }
  Result<DrawFacts> draw(const Case&, int, std::uint64_t, DrawKind) override { return DrawFacts(); }
  Result<ComputeFacts> compute(const Case&, int, Numerics, bool) override { return ComputeFacts(); }
  Result<void> detach(const Case&) override { return {}; }
  std::string versions() const override { return "none"; }
};

TEST(Ownership, AModulesProcessEndsWithTheLastEvaluatorThatDrivesIt) {
  Task task;
  task.module = Module{"/relu.py", kRelu, ""};
  std::weak_ptr<ModuleReference> process;
  std::vector<std::unique_ptr<Evaluator>> evaluators;
  {
    EvaluateSettings settings;
    settings.module = std::make_shared<NoReference>();
    process = settings.module;
    for (int i = 0; i < 2; ++i) {
      auto made = make_cpu_evaluator(task, Machine{}, settings);
      ASSERT_TRUE(made) << made.error().text();
      evaluators.push_back(std::move(*made));
    }
  }
  evaluators.pop_back();
  EXPECT_FALSE(process.expired());
  evaluators.pop_back();
  EXPECT_TRUE(process.expired());
}

TEST_F(CpuModule, RightOnTheGivenInputsAlone) {
  const Result<void> prepared = prepare(kRelu);
  ASSERT_TRUE(prepared) << prepared.error().text();
  const Evaluation right =
      evaluate(launch("for (int i = 0; i < 64 * 33; ++i) a.out[i] = a.x[i] > 0 ? a.x[i] : 0;"));
  ASSERT_NE(right.correct(), nullptr) << outcome_summary(right.outcome);
  EXPECT_TRUE(right.correct()->labels.empty()) << right.correct()->labels.front();
  EXPECT_EQ(right.correct()->timings.size(), 1u);

  // All inputs are positive, so a copy passes, with a note.
  const Evaluation copy = evaluate(launch("std::memcpy(a.out, a.x, 64 * 33 * 4);"));
  ASSERT_NE(copy.correct(), nullptr) << outcome_summary(copy.outcome);
  EXPECT_TRUE(labelled(copy, Label::kGivenDistributionOnly));
  const std::string notes = join_text(copy.correct()->notes, "; ");  // a busy machine adds one
  // Whichever comes first.
  EXPECT_TRUE(contains(notes, "centred on zero") || contains(notes, "of which a few differ") ||
              contains(notes, "outliers"))
      << notes;
}

TEST_F(CpuModule, LessThanFp32OnPositiveInputs) {
  const Result<void> prepared = prepare(
      "import torch\n"
      "class Model(torch.nn.Module):\n"
      "    def forward(self, x, y):\n"
      "        return x @ y\n"
      "def get_inputs():\n"
      "    return [torch.rand(8, 4096), torch.rand(4096, 8)]\n"
      "def get_init_inputs():\n"
      "    return []\n");
  ASSERT_TRUE(prepared) << prepared.error().text();
  const auto matmul = [](const std::string& rounded) {
    return launch(
        "for (int r = 0; r < 8; ++r) for (int c = 0; c < 8; ++c) {\n"
        "  float sum = 0;\n"
        "  for (int k = 0; k < 4096; ++k) sum += rounded(a.x[r * 4096 + k]) * "
        "rounded(a.y[k * 8 + c]);\n"
        "  a.out[r * 8 + c] = sum;\n"
        "}",
        "static float rounded(float v) { unsigned b; std::memcpy(&b, &v, 4); " + rounded +
            " std::memcpy(&v, &b, 4); return v; }");
  };
  const Evaluation whole = evaluate(matmul(""));
  ASSERT_NE(whole.correct(), nullptr) << outcome_summary(whole.outcome);
  // Rounds as tensor cores do for TF32: invisible in sums of positive products.
  const Evaluation tf32 = evaluate(matmul("b = (b + 0x1000) & ~0x1fffu;"));
  const auto* rejected = std::get_if<Rejected>(&tf32.outcome);
  ASSERT_NE(rejected, nullptr) << outcome_summary(tf32.outcome);
  EXPECT_EQ(rejected->rule, "precision");
}

// No probe is needed: the task's own inputs show it, and nothing sets them apart from timed ones.
TEST_F(CpuModule, ProductsInATaskThatIsNotLinear) {
  matmul_flops_ = 4 * 64 * 64 * 48;
  const Result<void> prepared = prepare(
      "import torch\n"
      "class Model(torch.nn.Module):\n"
      "    def forward(self, x, y):\n"
      "        return torch.softmax(x @ y / 8, 1) @ y.t()\n"
      "def get_inputs():\n"
      "    return [torch.randn(64, 48), torch.randn(48, 64)]\n"
      "def get_init_inputs():\n"
      "    return []\n");
  ASSERT_TRUE(prepared) << prepared.error().text();
  const auto kernel = [](const std::string& product) {
    return launch(
        "for (int r = 0; r < 64; ++r) {\n"
        "  float p[64], most = -1e30f, sum = 0;\n"
        "  for (int c = 0; c < 64; ++c) {\n"
        "    p[c] = 0;\n"
        "    for (int k = 0; k < 48; ++k) p[c] += product(a.x[r * 48 + k], a.y[k * 64 + c]);\n"
        "    most = std::fmax(most, p[c] /= 8);\n"
        "  }\n"
        "  for (int c = 0; c < 64; ++c) sum += p[c] = std::exp(p[c] - most);\n"
        "  for (int k = 0; k < 48; ++k) {\n"
        "    float result = 0;\n"
        "    for (int c = 0; c < 64; ++c) result += product(p[c], a.y[k * 64 + c]);\n"
        "    a.out[r * 48 + k] = result / sum;\n"
        "  }\n"
        "}",
        "#include <cmath>\n"
        "static float bf16(float v) { unsigned b; std::memcpy(&b, &v, 4);\n"
        "  b = (b + 0x7fffu + (b >> 16 & 1u)) & 0xffff0000u; std::memcpy(&v, &b, 4); return v; }\n"
        "static float product(float u, float v) { const float a = bf16(u), b = bf16(v);\n"
        "  const float c = bf16(u - a), d = bf16(v - b); (void)c; (void)d; return " +
            product + "; }\n");
  };
  const Evaluation plain = evaluate(kernel("u * v"));
  ASSERT_NE(plain.correct(), nullptr) << outcome_summary(plain.outcome);
  EXPECT_FALSE(labelled(plain, Label::kCoarserThanFp32));
  const Evaluation three =
      evaluate(kernel("a * b + (a * d + c * b) + c * d + (u - a - c) * v + u * (v - b - d)"));
  EXPECT_FALSE(labelled(three, Label::kCoarserThanFp32)) << outcome_summary(three.outcome);
  const Evaluation two = evaluate(kernel("a * b + (a * d + c * b)"));
  EXPECT_TRUE(labelled(two, Label::kCoarserThanFp32)) << outcome_summary(two.outcome);
}

TEST_F(CpuModule, WeightsMayNotBeRemembered) {
  const Result<void> prepared = prepare(linear("x @ w.t()"));
  ASSERT_TRUE(prepared) << prepared.error().text();
  const std::string compute =
      "for (int r = 0; r < 64; ++r) for (int o = 0; o < 24; ++o) {\n"
      "  float sum = 0;\n"
      "  for (int k = 0; k < 33; ++k) sum += a.x[r * 33 + k] * w[o * 33 + k];\n"
      "  a.out[r * 24 + o] = sum;\n"
      "}";
  const Evaluation honest = evaluate(launch("const float* w = a.layer_weight;\n" + compute));
  ASSERT_NE(honest.correct(), nullptr) << outcome_summary(honest.outcome);
  const Evaluation remembers = evaluate(
      launch("if (!known) { std::memcpy(w, a.layer_weight, sizeof w); known = true; }\n" + compute,
             "static float w[24 * 33];\nstatic bool known;"));
  EXPECT_TRUE(std::holds_alternative<WrongResult>(remembers.outcome))
      << outcome_summary(remembers.outcome);
}

TEST_F(CpuModule, KernelBenchsRuleIsAnother) {
  const std::string off = launch("for (int i = 0; i < 64 * 33; ++i) a.out[i] = a.x[i] * 1.00015f;");
  ASSERT_TRUE(prepare(kRelu));
  EXPECT_TRUE(std::holds_alternative<WrongResult>(evaluate(off).outcome));
  ASSERT_TRUE(prepare(kRelu, Policy::kKernelBench));
  const Evaluation evaluation = evaluate(off);
  ASSERT_NE(evaluation.correct(), nullptr) << outcome_summary(evaluation.outcome);
  EXPECT_TRUE(evaluation.correct()->labels.empty());  // no probes run there
  EXPECT_GT(evaluation.correct()->max_error, 0.5);
}

TEST_F(CpuModule, WhatCannotBeCheckedIsRefused) {
  expect_refused(linear("torch.nn.functional.dropout(x @ w.t(), 0.5)"), "disagrees with itself");
  expect_refused(linear("x @ w.t() * 0 + 3"), "constant");
  expect_refused(linear("(x * 0).sum() + w * 2"), "does not depend on the inputs");
  // Only rounding errors remain of these.
  expect_refused(linear("((x @ w.t()) / 3 * 3 - x @ w.t()) / 1e-7"), "degenerate");
}

TEST_F(CpuModule, AModuleThatChangesItsInputs) {
  const Result<void> prepared = prepare(linear("x.mul_(2) @ w.t()"));
  ASSERT_TRUE(prepared) << prepared.error().text();
  const Evaluation evaluation =
      evaluate(launch("for (int r = 0; r < 64; ++r) for (int o = 0; o < 24; ++o) {\n"
                      "  float sum = 0;\n"
                      "  for (int k = 0; k < 33; ++k) sum += 2 * a.x[r * 33 + k] * "
                      "a.layer_weight[o * 33 + k];\n"
                      "  a.out[r * 24 + o] = sum;\n"
                      "}"));
  EXPECT_NE(evaluation.correct(), nullptr) << outcome_summary(evaluation.outcome);
}

}  // namespace
}  // namespace kernelpro
