// SPDX-License-Identifier: Apache-2.0
// The recorded results of a replayed run, kept in the replaying run's header: its report can show
// what changed even after the recorded run is gone.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"

namespace kernelpro {

struct RecordedResult {
  std::string hash;     // content hash of the candidate
  std::int64_t id = 0;  // in the recorded run
  std::string outcome;  // outcome_name
  double us = 0;        // score; 0: not correct
  double speedup = 0;   // versus the recorded run's baseline, by comparable times; 0: not correct
};

struct Recorded {
  std::string directory;
  std::string machine;
  std::vector<RecordedResult> results;  // evaluated candidates, by id
};

// Fails with kStore when `directory` holds no run or the run cannot be read.
Result<Recorded> read_recorded(const std::string& directory);

std::string recorded_to_json(const Recorded& recorded);
Recorded recorded_from_json(const std::string& json);  // empty when damaged or ""

}  // namespace kernelpro
