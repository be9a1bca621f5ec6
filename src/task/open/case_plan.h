// SPDX-License-Identifier: Apache-2.0
// Chooses the sizes at which a PyTorch module is evaluated: its own if they fit, else smaller ones,
// which are reported. Allocates nothing; `describe` returns shapes only.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/error.h"
#include "core/task/module.h"

namespace kernelpro {

using Dims = std::map<std::string, std::int64_t>;
// Describes the module with these values for the integers at the top of its file.
using DescribeModule = std::function<Result<ModuleDescription>(const Dims& dims)>;

struct PlannedCase {
  std::string name;  // "reduced" (checked only), "full", "smaller" (instead of full)
  bool timed = false;
  Dims changed;  // differences from the file
  ModuleDescription description;
};

struct CasePlan {
  std::vector<PlannedCase> cases;  // in checking order; the last is timed
  std::vector<std::string> notes;  // sentences for the user
};

// Minimum bytes to evaluate this module: two input sets with outputs and expected results, plus the
// reference's allocations, in float64 or in the declared dtypes.
double evaluation_bytes(const ModuleDescription& description, bool float64);

// `full`: the module at its file's sizes. If it fits in float64, one case. If it fits only in its
// declared dtypes, also a reduced case that fits in float64, for checking only. If it does not fit,
// the largest case found that does is timed instead. Sizes are halved, batch-like names first, then
// the largest. Fails with kBadInput if no smaller size fits.
Result<CasePlan> plan_cases(const ModuleDescription& full, const DescribeModule& describe,
                            double available_bytes);

}  // namespace kernelpro
