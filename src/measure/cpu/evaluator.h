// SPDX-License-Identifier: Apache-2.0
// The verdict on a kernel for this machine's processors.
#pragma once

#include "measure/judge/evaluator.h"

namespace kernelpro {

// `task` and `machine` must outlive the evaluator.
Result<std::unique_ptr<Evaluator>> make_cpu_evaluator(const Task& task, const Machine& machine,
                                                      const EvaluateSettings& settings);

}  // namespace kernelpro
