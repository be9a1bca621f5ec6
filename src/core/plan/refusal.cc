// SPDX-License-Identifier: Apache-2.0
#include "core/plan/refusal.h"

#include <algorithm>
#include <cstddef>
#include <iterator>

#include "base/error.h"

namespace kernelpro {

namespace {

struct RefusalRow {
  RefusalKind kind;
  std::string_view name;
};

constexpr RefusalRow kRows[] = {
    {RefusalKind::kNone, ""},
    {RefusalKind::kEnvironment, "environment"},
    {RefusalKind::kTask, "task"},
    {RefusalKind::kInput, "input"},
    {RefusalKind::kReference, "reference"},
    {RefusalKind::kMemory, "memory"},
    {RefusalKind::kPlan, "plan"},
    {RefusalKind::kCompile, "compile"},
    {RefusalKind::kNoKernel, "no-kernel"},
    {RefusalKind::kException, "exception"},
    {RefusalKind::kCudaError, "cuda-error"},
    {RefusalKind::kBusy, "busy"},
    {RefusalKind::kUnavailable, "unavailable"},
    {RefusalKind::kForbidden, "forbidden"},
};
constexpr std::string_view kOutputs = "output-";

}  // namespace

RefusalKind refusal_kind(std::string_view rule) {
  const auto row = std::find_if(std::begin(kRows), std::end(kRows),
                                [&](const RefusalRow& each) { return each.name == rule; });
  if (row != std::end(kRows)) return row->kind;
  return rule.starts_with(kOutputs) ? RefusalKind::kOutput : RefusalKind::kBrokenRule;
}

std::string_view refusal_name(RefusalKind kind) {
  const auto row = std::find_if(std::begin(kRows), std::end(kRows),
                                [&](const RefusalRow& each) { return each.kind == kind; });
  KP_ASSERT(row != std::end(kRows));
  return row->name;
}

}  // namespace kernelpro
