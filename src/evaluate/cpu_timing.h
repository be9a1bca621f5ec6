// SPDX-License-Identifier: Apache-2.0
// Times a candidate on one case, against an incumbent turn by turn on the same buffers, or alone.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <variant>

#include "base/error.h"
#include "base/statistics.h"
#include "core/evaluation.h"
#include "evaluate/cpu_case.h"
#include "evaluate/cpu_session.h"
#include "evaluate/evaluator.h"

namespace kernelpro {

struct TimingPlan {
  double timeout_s = 30;  // of one call
  int max_pairs = 40;
  double budget_s = 1.0;  // after which `enough_pairs` will do
  int enough_pairs = 9;
  double hard_budget_s = 12;  // after which three pairs have to do
  double min_effect = 0.005;
  bool stop_early = true;
  std::uint64_t seed = 0;  // of poisons and of when outputs are compared
};

struct Timed {
  Timing timing;
  std::optional<Interval> ratio;  // incumbent's time over candidate's
  double max_error = 0;
  std::map<std::string, double> observed;
};

// `candidate` has passed its checks. `incumbent` may be null; when it fails here, the ratio is
// left out. The outputs of several timed turns of the candidate are compared, the last one's too.
// An Outcome: what went wrong with the candidate.
std::variant<Timed, Outcome> time_case(const CpuCase& state, CpuSession& candidate,
                                       CpuSession* incumbent, const TimingPlan& plan);

}  // namespace kernelpro
