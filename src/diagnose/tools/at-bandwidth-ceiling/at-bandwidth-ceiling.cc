// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"
#include "diagnose/tools/tool.h"

namespace kernelpro {

std::optional<Finding> at_bandwidth_ceiling(const Facts& facts) {
  const Roofline& roof = facts.roofline();
  if (roof.time_us <= 0) return std::nullopt;
  const double fraction = roof.memory_floor_us / roof.time_us;
  if (fraction < 0.9) return std::nullopt;

  Finding finding;
  finding.stop = true;
  finding.metrics = {"task.compulsory_bytes", "ceiling.copy_bandwidth", "timing.median"};
  finding.cause = "The compulsory traffic takes at least " + human_us(roof.memory_floor_us) +
                  " at the measured copy bandwidth of " +
                  per_second(facts("ceiling.copy_bandwidth"), "B") + "; the call takes " +
                  human_us(roof.time_us) + ", which is " +
                  (fraction >= 1 ? "at the ceiling (" + percent(fraction) + ")."
                                 : percent(fraction) + " of that ceiling.");
  if (fraction > kCopySlack) finding.cause += " Part of the data comes from a cache.";
  finding.prescriptions = {
      {"algorithm",
       "Stop tuning this kernel: only moving fewer bytes can help, for instance a narrower type or "
       "fusing it with its neighbours.",
       "the task's contract fixes types and tensors"}};
  return finding;
}

}  // namespace kernelpro
