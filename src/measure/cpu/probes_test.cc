// SPDX-License-Identifier: Apache-2.0
// Kernels that are right on a task's own inputs alone, and honest ones on contents that are hard
// for them: with a real compiler and real processes.
#include "measure/judge/probes.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/text.h"
#include "core/evaluation/label.h"
#include "measure/cpu/evaluator.h"
#include "measure/cpu/testing.h"

namespace kernelpro {
namespace {

constexpr Init kUnit{Init::Kind::kUniform, 0, 1};
constexpr Init kStandard{Init::Kind::kNormal, 0, 1};

class CpuProbes : public ::testing::Test {
 protected:
  // fp32 inputs a, b, ... of R x C elements, and an output y of the same shape: `value` of the
  // element i in float64.
  void open(const std::vector<Init>& inputs, const std::string& value, std::int64_t rows = 64) {
    task_ = Task();
    task_.name = "elements";
    for (const Init& init : inputs) {
      Tensor t;
      t.name = std::string(1, static_cast<char>('a' + task_.tensors.size()));
      t.shape = {"R", "C"};
      t.init = init;
      task_.tensors.push_back(t);
    }
    Tensor y = task_.tensors[0];
    y.name = "y";
    y.role = Role::kOutput;
    task_.tensors.push_back(y);
    Case c;
    c.name = "only";
    c.dims = {{"R", rows}, {"C", 257}};
    task_.cases = {c};
    value_ = value;
  }
  void prepare() {
    task_.reference_cpp =
        "#include \"task.h\"\n#include <cmath>\n"
        "extern \"C\" void reference(const ReferenceArgs& args) {\n" +
        body("double", value_) + "}\n";
    auto compiler = make_cpu_compiler(testing::compile_settings(cache_.path()));
    ASSERT_TRUE(compiler) << compiler.error().text();
    compiler_ = std::move(*compiler);
    EvaluateSettings settings;
    settings.timeout_s = 60;
    settings.samples = samples_;
    settings.probes_each = probes_each_;
    auto evaluator = make_cpu_evaluator(task_, Machine{}, settings);
    ASSERT_TRUE(evaluator) << evaluator.error().text();
    evaluator_ = std::move(*evaluator);
    const Result<void> prepared = testing::prepare(*evaluator_, task_, *compiler_);
    ASSERT_TRUE(prepared) << prepared.error().text();
  }
  // `before`: statements before the loop that computes `value`.
  Evaluation evaluate(const std::string& value, const std::string& before = "",
                      const std::string& top = "") {
    if (!evaluator_) prepare();
    Result<Evaluation> evaluation = evaluator_->evaluate(subject_of(value, before, top), nullptr);
    EXPECT_TRUE(evaluation) << evaluation.error().text();
    return *evaluation;
  }
  Subject subject_of(const std::string& value, const std::string& before = "",
                     const std::string& top = "") {
    Candidate candidate;
    candidate.source = "#include \"task.h\"\n#include <cmath>\n" + top +
                       "\nextern \"C\" void launch(const Args& args) {\n" + before + "\n" +
                       body("float", value) + "}\n";
    Subject subject;
    subject.hash = candidate.content_hash();
    for (const Case& c : task_.cases) {
      CompileResult built = compiler_->compile(task_, c, candidate);
      EXPECT_TRUE(built) << built.error().text();
      const auto* error = std::get_if<CompileError>(&*built);
      EXPECT_EQ(error, nullptr) << error->log;
      subject.binaries.push_back(std::get<Binary>(*built));
    }
    return subject;
  }
  std::string body(const std::string& type, const std::string& value) const {
    std::string text = "  for (long i = 0; i < R * C; ++i) {\n";
    for (const Tensor& t : task_.tensors) {
      if (t.role == Role::kOutput) continue;
      text += "    const " + type + " " + t.name + " = args." + t.name + "[i];\n";
    }
    return text + "    args.y[i] = " + value + ";\n  }\n";
  }
  static void expect_honest(const Evaluation& e) {
    ASSERT_NE(e.correct(), nullptr) << outcome_summary(e.outcome);
    const Correct& correct = *e.correct();
    EXPECT_TRUE(correct.labels.empty())
        << correct.labels[0] << ": " << join_text(correct.notes, "; ");
  }
  static void expect_label(const Evaluation& e, Label label) {
    ASSERT_NE(e.correct(), nullptr) << outcome_summary(e.outcome);
    EXPECT_TRUE(has_label(*e.correct(), label)) << join_text(e.correct()->labels, " ");
  }

  TempDir cache_;
  Task task_;
  std::string value_;
  int probes_each_ = 0, samples_ = 6;
  std::unique_ptr<Compiler> compiler_;
  std::unique_ptr<Evaluator> evaluator_;
};

TEST_F(CpuProbes, AFewElementsOfManyDecide) {
  open({kUnit}, "a > 0 ? a : 0.0");
  expect_honest(evaluate("a > 0 ? a : 0.0f"));
  // Looks at one element in 2048.
  expect_label(evaluate("careful && a < 0 ? 0.0f : a",
                        "bool careful = false;\n"
                        "for (long i = 5; i < R * C; i += 2048) careful |= args.a[i] < 0;"),
               Label::kGivenDistributionOnly);
}

// Others would be built on it: a search runs few kinds for the rest, and all for what leads.
TEST_F(CpuProbes, WhatWouldBecomeTheBestMeetsAll) {
  probes_each_ = 1;
  samples_ = 30;
  open({kUnit}, "std::exp(a)");
  task_.cases[0].timed = true;
  prepare();
  const Subject slow = subject_of("std::exp(a)",
                                  "for (int k = 0; k < 40; ++k) for (long i = 0; i < R * C; ++i) "
                                  "args.y[i] = std::exp(args.a[i] + k);");
  // Right for what the task draws.
  const Subject fast = subject_of("a < 0 ? 0.0f : std::exp(a)");
  // On a busy machine a comparison may leave open which is faster.
  int leads = 0;
  for (int k = 0; k < 40 && leads < 6; ++k) {
    Result<Evaluation> evaluation = evaluator_->evaluate(fast, &slow);
    ASSERT_TRUE(evaluation) << evaluation.error().text();
    const Correct* correct = evaluation->correct();
    ASSERT_NE(correct, nullptr) << outcome_summary(evaluation->outcome);
    if (!correct->versus || correct->versus->low <= 1 + kLeastEffect) continue;
    ++leads;
    expect_label(*evaluation, Label::kGivenDistributionOnly);
  }
  EXPECT_GT(leads, 0);
  // Alone it leads nobody, and one kind out of all seldom shows it.
  int missed = 0;
  for (int k = 0; k < 12 && missed == 0; ++k) {
    Result<Evaluation> evaluation = evaluator_->evaluate(fast, nullptr);
    ASSERT_TRUE(evaluation) << evaluation.error().text();
    const Correct* correct = evaluation->correct();
    ASSERT_NE(correct, nullptr) << outcome_summary(evaluation->outcome);
    missed += correct->labels.empty() ? 1 : 0;
  }
  EXPECT_GT(missed, 0);
}

// exp(4 a) is infinite for most inputs that are 64 times as large; a table or an exponent that is
// put together by hand is wrong long before.
TEST_F(CpuProbes, LargeInputsAreTriedUntilResultsAreFinite) {
  open({kStandard}, "std::exp(4 * a)");
  expect_honest(evaluate("std::exp(4 * a)"));
  expect_label(evaluate("a < -6 || a > 6 ? 1.0f : std::exp(4 * a)"), Label::kGivenDistributionOnly);
  expect_label(evaluate("a > 6 ? 1.0f : std::exp(4 * a)"), Label::kGivenDistributionOnly);
  // Wrong where results are zero.
  expect_label(evaluate("a < -22 ? 1e30f : std::exp(4 * a)"), Label::kGivenDistributionOnly);
}

TEST_F(CpuProbes, ResultsThatAreNeverFiniteHideNothing) {
  open({kUnit}, "a < 0.125 ? -INFINITY : a * a");
  expect_honest(evaluate("a < 0.125f ? -INFINITY : a * a"));
  expect_label(evaluate("a < 0.125f ? -INFINITY : a > 1.5f ? 2 : a * a"),
               Label::kGivenDistributionOnly);
}

// As many are infinite in every set; whether the first one is decides nothing.
TEST_F(CpuProbes, AnInfiniteFirstResultIsNotAConstantOutput) {
  open({kUnit}, "i == 0 ? -INFINITY : a * a");
  expect_honest(evaluate("i == 0 ? -INFINITY : a * a"));
}

TEST_F(CpuProbes, AnInputThatHardlyMattersDoesWhereItIsLarge) {
  open({kStandard, kStandard, kStandard}, "a + 1e-5 * b + 2e-6 * c");
  expect_honest(evaluate("a + 1e-5f * b + 2e-6f * c"));
  expect_label(evaluate("a + 2e-6f * c"), Label::kGivenDistributionOnly);
  expect_label(evaluate("a + 1e-5f * b"), Label::kGivenDistributionOnly);
}

TEST_F(CpuProbes, SizesThatNobodyTimesAreProbedToo) {
  open({kUnit}, "a > 0 ? a : 0.0");
  task_.cases[0].timed = true;
  Case small = task_.cases[0];
  small.name = "small";
  small.dims["R"] = 9;
  small.timed = false;
  task_.cases.push_back(small);
  expect_honest(evaluate("a > 0 ? a : 0.0f"));
  expect_label(evaluate("R == 64 && a < 0 ? 0.0f : a"), Label::kGivenDistributionOnly);
}

// Each hang takes as long as a call may.
TEST_F(CpuProbes, TheFirstThatEndsTheProcessIsTheLast) {
  open({kUnit}, "a > 0 ? a : 0.0");
  const std::string look =
      "float low = 1, high = 0;\n"
      "for (long i = 0; i < R * C; ++i) low = std::fmin(low, args.a[i]);\n"
      "for (long i = 0; i < R * C; ++i) high = std::fmax(high, args.a[i]);\n";
  const Evaluation hangs = evaluate(
      "a > 0 ? a : 0.0f", look + "while (low < 0 || high > 1 || high < 0.5f) asm volatile(\"\");");
  expect_label(hangs, Label::kGivenDistributionOnly);
  EXPECT_LT(hangs.run_ms, 50e3);  // of 60 for one call, were it not a probe
  expect_label(
      evaluate("a > 0 ? a : 0.0f", look + "if (low < 0 || high > 1) *(volatile int*)nullptr = 1;"),
      Label::kGivenDistributionOnly);
}

// Each result depends on the last digit of the one before it, more so where inputs are large.
TEST_F(CpuProbes, WhatRoundingDecidesIsNotHeldAgainstPlainArithmetic) {
  open({kStandard}, "a / (1.5 + (i == 0 ? 0.0 : args.y[i - 1] * args.y[i - 1]))", 128);
  for (int k = 0; k < 10; ++k) {
    evaluator_.reset();  // new contents
    expect_honest(evaluate("a / (1.5f + (i == 0 ? 0.0f : args.y[i - 1] * args.y[i - 1]))"));
  }
}

}  // namespace
}  // namespace kernelpro
