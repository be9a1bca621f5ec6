// SPDX-License-Identifier: Apache-2.0
// The instruction mix of a kernel's hot loops.
#pragma once

#include <map>
#include <string>

#include "core/evidence/places.h"

namespace kernelpro {

// Counts under the names of the metric registry: sass.*, sass.hot.*, sass.loop.*.
struct SassMix {
  std::map<std::string, double> metrics;
  // The source lines that contribute most to a metric, where line information exists:
  // "sass.hot.fp64" -> kernel.cu:41, kernel.cu:44.
  std::map<std::string, CodeLines> where;
  int loops = 0;      // 0: no loop, the whole body was counted
  double weight = 0;  // estimated work in the hot loops, for comparing kernels
  std::string text;   // human-readable listing of the hot loops
  std::string chain;  // human-readable longest carried chain of the hottest loop; "" = none
  std::string waits;  // human-readable: what waits for what in the hottest loop; "" = nothing
};

}  // namespace kernelpro
