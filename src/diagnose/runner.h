// SPDX-License-Identifier: Apache-2.0
// The one choke point through which every tool runs: enabling, trigger, validation, ranking. Pure.
#pragma once

#include <set>
#include <string>

#include "diagnose/record.h"
#include "diagnose/tools.h"

namespace kernelpro {

// Findings worth a writer's attention; further ones are withheld, with the reason.
inline constexpr int kMostFindings = 4;
struct RunnerSettings {
  std::set<std::string, std::less<>> disabled;  // tool names
  ToolRecord record;                            // outcomes of earlier findings
};

Diagnosis run_tools(const Evidence& evidence, std::span<const Tool> table,
                    const RunnerSettings& settings);

// Why a finding must not be reported (a gain that is not a number, an unlisted tag, an unregistered
// metric, no cause), or "". Such a finding is a bug in the tool: the runner reports the tool as not
// evaluable, and tests fail on it.
std::string finding_problem(const Finding& finding);

}  // namespace kernelpro
