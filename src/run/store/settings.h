// SPDX-License-Identifier: Apache-2.0
// A run's settings and their form in the store.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "measure/station/settings.h"
#include "write/settings.h"

namespace kernelpro {

struct RunSettings : StationSettings, WriterSettings {
  std::string directory;           // of the run
  std::string search;              // search/searches.h; "" = the preset's
  std::string preset = "default";  // search/parameters.h
  std::uint64_t seed = 1;          // of the search's and the writers' choices, not of inputs
  // Stoppers; the first to fire ends the run.
  int max_evaluations = 60;
  double max_seconds = 600;
  double near_ceiling = 0.95;  // stop when the best is this close to the measured ceiling
  // With models: stop when the next evaluation is expected to gain less (search/stoppers.h); 0:
  // off.
  double least_gain = 0.005;
  int plateau = 0;  // evaluations without improvement; 0: off
  // Runs and task folders whose best or kernel is evaluated first and built on.
  std::vector<std::string> start_from;
  // File with the record of how findings worked out: it ranks findings, and every step is added to
  // it; "" = none. The run keeps the file's content as of its start.
  std::string record;
  // File with facts (core/proposal/fact.h): writers get the relevant ones, and what this run learns
  // is added; "" = none. The run keeps the facts that it took at its start.
  std::string facts;
};

// Omits `directory`: a run may be moved.
std::string settings_to_json(const RunSettings& settings);
// Missing fields keep their defaults; nullopt when the text is damaged.
std::optional<RunSettings> settings_from_json(const std::string& json);

}  // namespace kernelpro
