// SPDX-License-Identifier: Apache-2.0
// A suite for people and for programs: pure functions of the results, and the files of DIR that
// hold them.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "suite/results.h"

namespace kernelpro {

// Markdown that reads well on a terminal, too: what was run, the measures of every arm, level and
// yardstick, the arms compared, every task, what was left out and what broke.
std::string suite_markdown(const SuiteSettings& settings, const std::vector<TaskResult>& results);
// The measures and comparisons of it alone.
std::string suite_summary(const SuiteSettings& settings, const std::vector<TaskResult>& results);
std::string suite_json(const SuiteSettings& settings, const std::vector<TaskResult>& results);

// KernelBench's own form, one file an arm and level as its scripts want them: eval_results.json by
// problem id, and what was to be beaten as a file for its `baseline_file`. Paths are relative.
std::vector<std::pair<std::string, std::string>> kernelbench_files(
    const SuiteSettings& settings, const std::vector<TaskResult>& results);

// Writes DIR/report.md, DIR/report.json and DIR/kernelbench/. Fails with kStore.
Result<void> write_suite_report(const SuiteSettings& settings,
                                const std::vector<TaskResult>& results);

// One line: "feedback=raw 1/23: 2.31x (2.20x to 2.40x), 60 evaluations, 812 s". Held-out cases, if
// there are some, come after the speed-up.
std::string result_line(const TaskResult& result);

}  // namespace kernelpro
