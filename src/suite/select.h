// SPDX-License-Identifier: Apache-2.0
// Lists a suite's tasks and selects those to run. A suite is a KernelBench checkout (a folder with
// KernelBench/level1 and so on, or with level1 itself) or a folder of task folders.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"

namespace kernelpro {

struct SuiteTask {
  std::string name;  // its folder below the arm's: "level1-23_Softmax", "softmax"
  std::string path;  // absolute: a .py file, or a folder with task.toml
  int level = 0;     // KernelBench; 0: a task folder
  int number = 0;    // KernelBench: the number at the start of the file name
};
// The label that users see and type: "1/23", or the name of a task folder.
std::string task_label(const SuiteTask& task);

struct ExcludedTask {
  std::string label;
  std::string reason;
  std::string by;  // "built-in" or the list's file
};

struct SelectSettings {
  std::string suite;
  std::string levels;       // "1,2"; "": those present of 1 to 3 (4 downloads models)
  std::string range;        // "1-20", of each level's numbers; "": all
  std::string tasks;        // "1/23,2/9", or names of task folders; "": all
  std::string exclude;      // file, *.toml or *.csv; ""
  bool degenerate = false;  // keep the tasks on the built-in list
  int sample = 0;           // tasks per level; 0: all
  std::uint64_t seed = 1;   // of the sample
};

struct Selection {
  std::vector<SuiteTask> tasks;        // by level and number, or by name
  std::vector<ExcludedTask> excluded;  // tasks that would otherwise have been run
  std::string rule;                    // how the tasks were chosen, one sentence
  bool kernelbench = false;
};

// Reads only folders and lists; faults in a task surface when it is run. Fails with kBadInput on
// contradictory settings, on missing tasks, and when no task is left.
Result<Selection> select_tasks(const SelectSettings& settings);

// Parses a list of tasks to exclude. CSV: one "1/23,why" per line, '#' begins a comment. TOML:
// [[exclude]] with task and reason. Every entry needs a reason. `path` is for messages; *.toml is
// read as TOML.
Result<std::vector<ExcludedTask>> parse_exclusions(const std::string& text,
                                                   const std::string& path);

}  // namespace kernelpro
