// SPDX-License-Identifier: Apache-2.0
// One kernel, once, without a run: verdict, evidence, diagnosis (`kernelpro evaluate`).
#pragma once

#include <string>

#include "base/error.h"
#include "core/proposal.h"
#include "core/task.h"
#include "run/run.h"
#include "run/target.h"

namespace kernelpro {

struct EvaluateOneResult {
  Candidate candidate;
  Evaluation evaluation;  // versus the task's starting kernel, where that is there and correct
  Evidence evidence;      // empty unless correct
  Diagnosis diagnosis;
  Machine machine;
};

// `overrides` set knobs that the source declares to values that it lists; others keep their
// defaults. Of `settings` only target, seed and timeout_s count. Fails with kBadInput on faulty
// knobs or overrides; what the kernel does wrong is in the evaluation.
Result<EvaluateOneResult> evaluate_one(const Task& task, TargetKind target,
                                       const std::string& source, const KnobValues& overrides,
                                       const RunSettings& settings,
                                       const TargetMaker& maker = make_target);

}  // namespace kernelpro
