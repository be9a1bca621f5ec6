// SPDX-License-Identifier: Apache-2.0
// How far apart processes are that time the same kernel, and what several of them measured.
#include <algorithm>
#include <cmath>

#include "measure/cuda/timing.h"

namespace kernelpro {

double process_spread(double call_us) {
  constexpr double kSpreadUs = 0.6, kMost = 0.045;
  return std::min(kMost, kSpreadUs / std::max(call_us, 1e-3));
}

namespace {

Interval around(double mid, double below, double above) {
  return {mid * std::exp(-below), mid, mid * std::exp(above)};
}

}  // namespace

Interval widened(const Interval& ratio, double spread) {
  return around(ratio.mid, std::hypot(std::log(ratio.mid / ratio.low), spread),
                std::hypot(std::log(ratio.high / ratio.mid), spread));
}

Interval corrected(const Interval& ratio, const Interval& equals) {
  return around(ratio.mid / equals.mid,
                std::hypot(std::log(ratio.mid / ratio.low), std::log(equals.high / equals.mid)),
                std::hypot(std::log(ratio.high / ratio.mid), std::log(equals.mid / equals.low)));
}

CudaTimed merge_processes(const std::vector<CudaTimed>& processes) {
  KP_ASSERT(!processes.empty());
  std::size_t each = SIZE_MAX;
  for (const CudaTimed& timed : processes) each = std::min(each, timed.times_us.size());
  CudaTimed all = processes.front();
  all.times_us.clear();
  all.sets.clear();
  for (const CudaTimed& timed : processes) {
    all.times_us.insert(all.times_us.end(), timed.times_us.begin(),
                        timed.times_us.begin() + static_cast<std::ptrdiff_t>(each));
    all.sets.insert(all.sets.end(), timed.sets.begin(),
                    timed.sets.begin() + static_cast<std::ptrdiff_t>(each));
  }
  const Interval interval = median_interval(all.times_us);
  all.timing.median_us = std::clamp(grouped_median(all.times_us), interval.low, interval.high);
  all.timing.low_us = interval.low;
  all.timing.high_us = interval.high;
  all.timing.samples = static_cast<int>(all.times_us.size());
  all.timing.method += ", " + std::to_string(processes.size()) + " processes";
  return all;
}

}  // namespace kernelpro
