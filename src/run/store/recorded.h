// SPDX-License-Identifier: Apache-2.0
// What the candidates of a replayed run came to when they were recorded: kept in the replaying
// run's header, so that its report can say what changed after the recorded run is gone.
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
  double speedup = 0;   // over the recorded run's first correct candidate; 0: not correct
};

struct Recorded {
  std::string directory;
  std::string machine;
  std::vector<RecordedResult> results;  // evaluated candidates, by id
};

// Fails with kStore when there is no run in `directory` or it cannot be read.
Result<Recorded> read_recorded(const std::string& directory);

std::string recorded_to_json(const Recorded& recorded);
Recorded recorded_from_json(const std::string& json);  // empty when damaged or ""

}  // namespace kernelpro
