// SPDX-License-Identifier: Apache-2.0
// A run's settings, and how the store keeps them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "measure/station/settings.h"
#include "write/settings.h"

namespace kernelpro {

struct RunSettings : StationSettings, WriterSettings {
  std::string directory;           // of the run
  std::string search;              // search/searches.h; "" = the preset's own
  std::string preset = "default";  // search/parameters.h
  // Stoppers; whichever comes first.
  int max_evaluations = 60;
  double max_seconds = 600;
  double near_ceiling = 0.95;  // stop when the best is this close to the measured ceiling
  int plateau = 0;             // evaluations without a better one; 0: off
  // Runs whose best, and task folders whose kernel, are evaluated first and built on.
  std::vector<std::string> start_from;
  // File with the record of what came of findings: ranks them, and every step is added to it; "" =
  // none. The run keeps what the file held when it began.
  std::string record;
  // File with facts (core/fact.h): writers get those of use here, and what this run learns is
  // added; "" = none. The run keeps what it took from there when it began.
  std::string facts;
};

// `directory` is left out: a run may be moved.
std::string settings_to_json(const RunSettings& settings);
// Fields that are missing keep their defaults; nullopt when the text is damaged.
std::optional<RunSettings> settings_from_json(const std::string& json);

}  // namespace kernelpro
