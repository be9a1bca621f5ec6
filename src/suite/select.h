// SPDX-License-Identifier: Apache-2.0
// Which tasks a suite has, and which of them are run. A suite is a KernelBench checkout (a folder
// with KernelBench/level1 and so on, or with level1 itself) or a folder of task folders.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"

namespace kernelpro {

struct SuiteTask {
  std::string name;  // its folder below an arm's: "level1-23_Softmax", "softmax"
  std::string path;  // absolute: a .py file, or a folder with task.toml
  int level = 0;     // KernelBench; 0: a task folder
  int number = 0;    // KernelBench: what the file's name begins with
};
// "1/23", or the name of a task folder: how people name it.
std::string task_label(const SuiteTask& task);

struct ExcludedTask {
  std::string label;
  std::string reason;
  std::string by;  // "built-in" or the list's file
};

struct SelectSettings {
  std::string suite;
  std::string levels;       // "1,2"; "": 1 to 3, those that are there (4 downloads models)
  std::string range;        // "1-20", of each level's numbers; "": all
  std::string tasks;        // "1/23,2/9", or names of task folders; "": all
  std::string exclude;      // file, *.toml or *.csv; ""
  bool degenerate = false;  // keep those of the built-in list
  int sample = 0;           // of each level; 0: all
  std::uint64_t seed = 1;   // of the sample
};

struct Selection {
  std::vector<SuiteTask> tasks;        // by level and number, or by name
  std::vector<ExcludedTask> excluded;  // of those that would have been run
  std::string rule;                    // how they were chosen, one sentence
  bool kernelbench = false;
};

// Reads folders and lists alone; a task with a fault is found when it is run. Fails with kBadInput
// on what contradicts itself, what is not there, and when nothing is left.
Result<Selection> select_tasks(const SelectSettings& settings);

// A list of tasks to leave out. CSV: a line "1/23,why" each, '#' begins a comment. TOML:
// [[exclude]] with task and reason. Every one needs its reason. `path` is for messages; *.toml is
// read as TOML.
Result<std::vector<ExcludedTask>> parse_exclusions(const std::string& text,
                                                   const std::string& path);

}  // namespace kernelpro
