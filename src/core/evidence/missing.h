// SPDX-License-Identifier: Apache-2.0
// What could not be observed, by family of metrics, with the reason.
#pragma once

#include <string>
#include <vector>

#include "core/evidence/metric.h"

namespace kernelpro {

struct Missing {
  Family family = Family::kTask;
  std::string reason;                     // "nvdisasm was not found"
  std::string next;                       // "install the CUDA toolkit's nvdisasm"
  std::vector<std::string> metrics = {};  // of the family, those without a value; empty: any
  // "of 496 launches": only this part was not seen. The rest was, so it explains no missing metric.
  std::string part = {};
};

// What is missing, for people: "hardware counters", "hardware counters of 496 launches", or the
// names of the metrics.
std::vector<std::string> missing_names(const Missing& missing);

}  // namespace kernelpro
