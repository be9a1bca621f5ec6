// SPDX-License-Identifier: Apache-2.0
#include "measure/station/unless_killed.h"

#include "base/cancel.h"
#include "base/stop.h"

namespace kernelpro {

Result<std::optional<Evaluation>> unless_killed(
    const std::function<Result<Evaluation>()>& evaluate) {
  for (int times = 1;; ++times) {
    Result<Evaluation> evaluation = evaluate();
    if (cancel_requested()) return std::optional<Evaluation>();
    if (!evaluation) return tl::unexpected<Error>(std::move(evaluation.error()));
    if (!perhaps_killed(evaluation->outcome)) return std::optional(std::move(*evaluation));
    if (stop_requested()) return std::optional<Evaluation>();
    if (times < kMostKilled) continue;
    auto& crashed = std::get<Crashed>(evaluation->outcome);
    const std::string how = crashed.reason + " (" + std::to_string(times) + " times in a row)";
    if (crashed.by == Crashed::By::kPerhapsOutside) {
      crashed.reason = how;
      return std::optional(std::move(*evaluation));
    }
    return fail(ErrorKind::kEnvironment, how + ": something outside KernelPro ends its processes",
                "see what it is (dmesg names victims of the out-of-memory killer; batch systems "
                "have limits), free memory or raise the limit, and go on: kernelpro resume RUN");
  }
}

}  // namespace kernelpro
