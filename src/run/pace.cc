// SPDX-License-Identifier: Apache-2.0
#include "run/pace.h"

#include <algorithm>

namespace kernelpro {

namespace {
constexpr int kForAPace = 3;  // evaluations
}

double seconds_left(const RunSettings& settings, double elapsed_s, int evaluations) {
  const bool timed = settings.max_seconds > 0;
  const double of_time = timed ? std::max(0.0, settings.max_seconds - elapsed_s) : 0;
  if (settings.max_evaluations <= 0 || evaluations < kForAPace) return of_time;
  const double each = elapsed_s / evaluations;
  const double of_pace = each * std::max(0, settings.max_evaluations - evaluations);
  return timed ? std::min(of_time, of_pace) : of_pace;
}

}  // namespace kernelpro
