// SPDX-License-Identifier: Apache-2.0
// How `kernelpro evaluate` shows its result. docs/evaluation.md describes the JSON.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "run/evaluate_one.h"

namespace kernelpro {

// The context that a verdict is shown with.
struct VerdictContext {
  std::string kernel;   // file
  std::string against;  // "the starting kernel", or a file
  const Task* task = nullptr;
  TargetKind target = TargetKind::kCpu;
  Policy policy = Policy::kContract;
  std::vector<std::string> notes;  // of the task: "runs at batch_size = 2048 instead of 4096"
};

// Human-readable lines: the verdict first, then times, comparisons, labels, findings.
std::string verdict_text(const VerdictContext& context, const EvaluateOneResult& result);
// The diagnosis again, of a kernel that was shown before its machine's ceilings were measured
// again.
std::string diagnosed_anew_text(const VerdictContext& context, const EvaluateOneResult& result);
Json verdict_json(const VerdictContext& context, const EvaluateOneResult& result);

}  // namespace kernelpro
