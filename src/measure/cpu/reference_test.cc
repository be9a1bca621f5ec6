// SPDX-License-Identifier: Apache-2.0
// Tasks that must be refused.
#include <gtest/gtest.h>

#include "base/text.h"
#include "measure/cpu/evaluator.h"
#include "measure/cpu/testing.h"

namespace kernelpro {
namespace {

class CpuReference : public ::testing::Test {
 protected:
  // Result of prepare() for scale_task with this reference.
  Result<void> prepare(const std::string& reference) {
    Task task = testing::scale_task();
    task.reference_cpp = "#include \"task.h\"\n" + reference;
    return prepare(task);
  }
  Result<void> prepare(const Task& task) {
    auto compiler = make_cpu_compiler(testing::compile_settings(cache_.path()));
    EXPECT_TRUE(compiler) << compiler.error().text();
    EvaluateSettings settings;
    settings.timeout_s = 4;
    auto evaluator = make_cpu_evaluator(task, Machine{}, settings);
    EXPECT_TRUE(evaluator) << evaluator.error().text();
    return testing::prepare(**evaluator, task, **compiler);
  }
  void expect_refused(const std::string& reference, const std::string& words) {
    const Result<void> prepared = prepare(reference);
    ASSERT_FALSE(prepared) << words;
    EXPECT_EQ(prepared.error().kind, ErrorKind::kTask);
    EXPECT_TRUE(contains(prepared.error().message, words)) << prepared.error().text();
    EXPECT_FALSE(prepared.error().next.empty());
  }
  static std::string body(const std::string& text) {
    return "extern \"C\" void reference(const ReferenceArgs& a) {\n" + text + "\n}\n";
  }
  TempDir cache_;
};

TEST_F(CpuReference, IsRefusedWhenItFails) {
  expect_refused(body("  a.q[0] = 1;"), "reference.cpp:3");
  expect_refused(body("  *(volatile int*)nullptr = 1;"), "null pointer");
  expect_refused(body("  for (;;) asm volatile(\"\");"), "ran longer than");
  expect_refused(
      body("  for (long i = 0; i < R * C; ++i) a.y[i] = i;\n  for (int r = 0; r < R; ++r) "
           "a.n[r] = r;\n  a.y[R * C] = 1;"),
      "past the end of tensor y");
}

TEST_F(CpuReference, IsRefusedWhenItDisagreesWithItself) {
  expect_refused(
      "static int calls;\n" + body("  ++calls; for (long i = 0; i < R * C; ++i) a.y[i] = "
                                   "a.x[i] * calls;\n  for (int r = 0; r < R; ++r) a.n[r] = r;"),
      "disagrees with itself");
  // Leaves an element unwritten.
  expect_refused(body("  for (long i = 1; i < R * C; ++i) a.y[i] = a.x[i];\n"
                      "  for (int r = 0; r < R; ++r) a.n[r] = r;"),
                 "disagrees with itself");
}

TEST_F(CpuReference, IsRefusedWhenTheTaskIsDegenerate) {
  expect_refused(body("  for (long i = 0; i < R * C; ++i) a.y[i] = 0;\n"
                      "  for (int r = 0; r < R; ++r) a.n[r] = r;"),
                 "output y is constant");
  expect_refused(body("  for (long i = 0; i < R * C; ++i) a.y[i] = i;\n"
                      "  for (int r = 0; r < R; ++r) a.n[r] = r;"),
                 "does not depend on the inputs");
}

TEST_F(CpuReference, ACaseThatDoesNotFitIsRefused) {
  Task task = testing::scale_task();
  task.cases[1].dims["R"] = 1LL << 40;
  const Result<void> prepared = prepare(task);
  ASSERT_FALSE(prepared);
  EXPECT_EQ(prepared.error().kind, ErrorKind::kEnvironment);
  EXPECT_TRUE(contains(prepared.error().message, "of memory")) << prepared.error().text();
}

}  // namespace
}  // namespace kernelpro
