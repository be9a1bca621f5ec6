// SPDX-License-Identifier: Apache-2.0
// Which sizes of a PyTorch module are evaluated: its own where they fit, else stated smaller ones.
// Nothing is allocated; `describe` only tells shapes.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/error.h"
#include "core/module.h"

namespace kernelpro {

using Dims = std::map<std::string, std::int64_t>;
// The module with these integers at the top of its file.
using DescribeModule = std::function<Result<ModuleDescription>(const Dims& dims)>;

struct PlannedCase {
  std::string name;  // "reduced" (checked only), "full", "smaller" (instead of full)
  bool timed = false;
  Dims changed;  // what differs from the file
  ModuleDescription description;
};

struct CasePlan {
  std::vector<PlannedCase> cases;  // in order of checking; the last is timed
  std::vector<std::string> notes;  // sentences for the user
};

// Bytes that an evaluation of this module needs at least: two input sets with outputs and expected
// results, and what the reference allocates, in float64 or in the declared types.
double evaluation_bytes(const ModuleDescription& description, bool float64);

// `full`: the module as its file has it. Three outcomes: it fits in float64: one case. It fits in
// its declared types only: a reduced case, which fits in float64, is checked besides. It does not
// fit: the largest case found that does is timed instead. Sizes are halved, batch-like names first,
// then the largest. Fails with kBadInput when no smaller size is found that fits.
Result<CasePlan> plan_cases(const ModuleDescription& full, const DescribeModule& describe,
                            double available_bytes);

}  // namespace kernelpro
