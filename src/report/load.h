// SPDX-License-Identifier: Apache-2.0
// The machine's load in a report's JSON.
#pragma once

#include "base/json.h"
#include "core/evaluation/load.h"

namespace kernelpro {

// Empty when nothing was timed.
inline Json load_json(const LoadSummary& load) {
  if (load.timed == 0) return Json::object();
  return {{"busy", load.busy > 0},
          {"timed", load.timed},
          {"timed_busy", load.busy},
          {"foreign_cpu_mean", load.mean_cpu},
          {"foreign_cpu_most", load.most_cpu},
          {"pairs_dropped", load.pairs_dropped},
          {"pairs_disturbed", load.pairs_disturbed},
          {"gpu_processes", load.gpu_processes},
          {"text", load_text(load)}};
}

}  // namespace kernelpro
