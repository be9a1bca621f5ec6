// SPDX-License-Identifier: Apache-2.0
// Suite reports for people and programs: pure functions of the results, and the files in DIR.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "suite/results.h"

namespace kernelpro {

// Markdown that is also readable on a terminal: the settings, the measures of every arm, level and
// yardstick, the comparison of the arms, every task, the excluded and the broken tasks.
std::string suite_markdown(const SuiteSettings& settings, const std::vector<TaskResult>& results);
// Only its measures and comparisons.
std::string suite_summary(const SuiteSettings& settings, const std::vector<TaskResult>& results);
std::string suite_json(const SuiteSettings& settings, const std::vector<TaskResult>& results);

// KernelBench's formats, one file per arm and level as its scripts expect: eval_results.json by
// problem id, and the yardsticks as a file for its `baseline_file`. Paths are relative.
std::vector<std::pair<std::string, std::string>> kernelbench_files(
    const SuiteSettings& settings, const std::vector<TaskResult>& results);

// Writes DIR/report.md, DIR/report.json and DIR/kernelbench/. Fails with kStore.
Result<void> write_suite_report(const SuiteSettings& settings,
                                const std::vector<TaskResult>& results);

// One line: "feedback=raw 1/23: 2.31x (2.20x to 2.40x), 60 evaluations, 812 s". Held-out cases, if
// any, follow the speedup.
std::string result_line(const TaskResult& result);

}  // namespace kernelpro
