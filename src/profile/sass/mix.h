// SPDX-License-Identifier: Apache-2.0
// What the hot loops of a kernel do.
#pragma once

#include <map>
#include <string>

namespace kernelpro {

// Counts under the names of the metric registry: sass.*, sass.hot.*, sass.loop.*.
struct SassMix {
  std::map<std::string, double> metrics;
  // Where most of what a metric counts comes from, as far as line information tells:
  // "sass.hot.fp64" -> "kernel.cu:41, kernel.cu:44".
  std::map<std::string, std::string> where;
  int loops = 0;      // 0: no loop, the whole body was counted
  double weight = 0;  // an estimate of the work in the hot loops, to compare kernels by
  std::string text;   // the hot loops, for people
  std::string chain;  // the longest carried chain of the hottest loop, for people; "" = none
  std::string waits;  // what waits for what in the hottest loop, for people; "" = nothing
};

}  // namespace kernelpro
