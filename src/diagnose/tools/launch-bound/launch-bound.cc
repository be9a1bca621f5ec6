// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/text.h"
#include "diagnose/tools/tool.h"

namespace kernelpro {

namespace {
// From the end of one kernel to the start of the next that depends on it, inside a graph.
constexpr double kDrainUs = 1.5;
// Of a kernel's share of the call; some of it is work.
constexpr double kMostOfAKernel = 0.95;
}  // namespace

std::optional<Finding> launch_bound(const Facts& facts) {
  const double kernels = facts("plan.kernels");
  const double time_us = facts("timing.median");
  if (kernels < 3 || time_us / kernels >= kShortKernelUs) return std::nullopt;

  Finding finding;
  finding.severity = Severity::kWarning;
  finding.metrics = {"plan.kernels", "timing.median"};
  finding.cause = "One call is " + number(kernels) + " kernels of " + human_us(time_us / kernels) +
                  " on average, gaps included; each start after a "
                  "dependent kernel costs one to two microseconds.";
  finding.prescriptions = {
      {"algorithm",
       "Fuse neighbouring kernels into one, so that intermediate results stay in registers or "
       "shared memory.",
       "a grid-wide dependency separates them; then overlap them by programmatic dependent launch"},
      {"passes", "Drop passes that only re-read what another kernel has just had.", ""}};
  // One kernel is left with the time that is not spent between two; the starts cannot take more
  // than the rest of each kernel leaves, and the runner cuts the gain to the roofline.
  const double between_us = std::min(kDrainUs, kMostOfAKernel * time_us / kernels);
  finding.likely_speedup = time_us / (time_us - (kernels - 1) * between_us);
  finding.upper_speedup = kernels;
  return finding;
}

}  // namespace kernelpro
