// SPDX-License-Identifier: Apache-2.0
#include "task/open/case_plan.h"

#include <gtest/gtest.h>

#include "base/text.h"

namespace kernelpro {
namespace {

// y[batch, d] = x[batch, d] @ w[d, d]; fails if d is not a multiple of 64.
Result<ModuleDescription> linear(const Dims& changed) {
  ModuleDescription description;
  description.dims = {{"batch_size", 4096}, {"d", 1024}, {"heads", 8}};
  for (const auto& [name, value] : changed) description.dims[name] = value;
  const std::int64_t b = description.dims["batch_size"], d = description.dims["d"];
  if (d % 64 != 0) return fail(ErrorKind::kTask, "d must be a multiple of 64", "");
  description.items = {{"x", "x", Role::kInput, false, DType::kFp32, {b, d}},
                       {"w", "w", Role::kParameter, false, DType::kFp32, {d, d}},
                       {"out", "out", Role::kOutput, false, DType::kFp32, {b, d}}};
  return description;
}

TEST(CasePlan, OneCaseWhereFloat64Fits) {
  const ModuleDescription full = *linear({});
  const auto plan = plan_cases(full, linear, evaluation_bytes(full, true));
  ASSERT_TRUE(plan) << plan.error().text();
  ASSERT_EQ(plan->cases.size(), 1u);
  EXPECT_EQ(plan->cases[0].name, "full");
  EXPECT_TRUE(plan->cases[0].timed);
  EXPECT_TRUE(plan->notes.empty());
}

TEST(CasePlan, AReducedCaseForFloat64) {
  const ModuleDescription full = *linear({});
  const double narrow = evaluation_bytes(full, false);
  const double room = 1.1 * narrow;
  ASSERT_LT(room, evaluation_bytes(full, true));
  const auto plan = plan_cases(full, linear, room);
  ASSERT_TRUE(plan) << plan.error().text();
  ASSERT_EQ(plan->cases.size(), 2u);
  EXPECT_EQ(plan->cases[0].name, "reduced");
  EXPECT_FALSE(plan->cases[0].timed);
  EXPECT_LE(evaluation_bytes(plan->cases[0].description, true), room - narrow)
      << "both cases are there at once";
  EXPECT_LT(plan->cases[0].changed.at("batch_size"), 4096) << "the batch is the first to shrink";
  EXPECT_FALSE(plan->cases[0].changed.contains("heads")) << "it changes no size";
  EXPECT_EQ(plan->cases[1].name, "full");
  EXPECT_TRUE(contains(plan->notes.at(0), "batch_size = "));
}

TEST(CasePlan, ASmallerCaseIsStated) {
  const ModuleDescription full = *linear({});
  const auto plan = plan_cases(full, linear, evaluation_bytes(full, false) / 8);
  ASSERT_TRUE(plan) << plan.error().text();
  ASSERT_EQ(plan->cases.size(), 1u);
  EXPECT_EQ(plan->cases[0].name, "smaller");
  EXPECT_TRUE(plan->cases[0].timed);
  EXPECT_LE(evaluation_bytes(plan->cases[0].description, true), evaluation_bytes(full, false) / 8);
  EXPECT_TRUE(contains(plan->notes.at(0), "instead of 4096"));
}

TEST(CasePlan, NothingFits) {
  const auto plan = plan_cases(*linear({}), linear, 1000);
  ASSERT_FALSE(plan);
  EXPECT_EQ(plan.error().kind, ErrorKind::kBadInput);
  EXPECT_TRUE(contains(plan.error().next, "--set"));
}

}  // namespace
}  // namespace kernelpro
