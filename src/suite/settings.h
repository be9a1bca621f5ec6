// SPDX-License-Identifier: Apache-2.0
// The settings of a suite run: everything that its workers need on any machine. Kept as
// DIR/suite.json; results are only in the runs below DIR.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "core/task/dtype.h"
#include "core/task/task.h"
#include "run/run.h"
#include "suite/arms.h"
#include "suite/select.h"

namespace kernelpro {

struct SuiteSettings {
  std::string directory;  // DIR, absolute; not stored: the folder may be moved
  std::string suite;      // absolute
  bool kernelbench = false;
  std::string rule;  // of the selection
  std::vector<SuiteTask> tasks;
  std::vector<ExcludedTask> excluded;
  std::vector<Arm> arms;
  std::string target = "auto";         // auto | cpu | cuda; auto is resolved where a task is run
  std::optional<Precision> precision;  // overrides the tasks' precision
  std::string python;
  bool baselines = false;    // measure eager PyTorch, torch.compile and CUDA graphs
  std::string replay_suite;  // with proposer replay: DIR of the suite whose runs are replayed
  RunSettings run;           // of every run; `directory`, `target` and `replay_from` are per run
};

std::string suite_to_json(const SuiteSettings& settings);
std::optional<SuiteSettings> suite_from_json(const std::string& json);

// Writes DIR/suite.json, or finds the same settings there and continues that suite. Fails with
// kBadInput, naming the differences, when DIR was started with other settings; with kStore when the
// file cannot be written or read.
Result<void> begin_suite(const SuiteSettings& settings);
// Fails with kBadInput when there is no suite, with kStore when it is damaged.
Result<SuiteSettings> read_suite(const std::string& directory);

// DIR/<arm>/<task>
std::string run_folder(const SuiteSettings& settings, const Arm& arm, const SuiteTask& task);

}  // namespace kernelpro
