// SPDX-License-Identifier: Apache-2.0
// What a suite run is: everything that its workers, on whatever machine, have to know. Kept as
// DIR/suite.json; what came of it is in the runs below DIR and nowhere else.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "core/dtype.h"
#include "core/task.h"
#include "run/run.h"
#include "suite/arms.h"
#include "suite/select.h"

namespace kernelpro {

struct SuiteSettings {
  std::string directory;  // DIR, absolute; not kept: the folder may be moved
  std::string suite;      // absolute
  bool kernelbench = false;
  std::string rule;  // of the selection
  std::vector<SuiteTask> tasks;
  std::vector<ExcludedTask> excluded;
  std::vector<Arm> arms;
  std::string target = "auto";         // auto | cpu | cuda; auto is decided where a task is run
  std::optional<Precision> precision;  // instead of the tasks' own
  std::string python;
  bool baselines = false;    // measure eager PyTorch, torch.compile and CUDA graphs
  std::string replay_suite;  // with proposer replay: DIR of the suite whose runs are tried again
  RunSettings run;           // of every run; `directory`, `target` and `replay_from` are its own
};

std::string suite_to_json(const SuiteSettings& settings);
std::optional<SuiteSettings> suite_from_json(const std::string& json);

// Writes DIR/suite.json, or finds the same settings there: the suite then goes on. Fails with
// kBadInput, naming what differs, when DIR was begun with others; kStore when it cannot be written
// or read.
Result<void> begin_suite(const SuiteSettings& settings);
// Fails with kBadInput when there is none, kStore when it is damaged.
Result<SuiteSettings> read_suite(const std::string& directory);

// DIR/<arm>/<task>
std::string run_folder(const SuiteSettings& settings, const Arm& arm, const SuiteTask& task);

}  // namespace kernelpro
