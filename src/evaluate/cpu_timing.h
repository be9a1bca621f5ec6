// SPDX-License-Identifier: Apache-2.0
// Times a candidate on one case, against an incumbent turn by turn on the same buffers, or alone.
//
// Every timed call works on inputs that its process has never seen: what a kernel remembers of
// earlier calls helps nothing, and all outputs of timed calls are compared. Inputs of a turn are
// put into the buffers while all threads of the worker are stopped, so that nothing can be
// computed ahead of the clock; when a process has seen them all, a new one takes its place.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/error.h"
#include "base/statistics.h"
#include "core/evaluation.h"
#include "evaluate/cpu_case.h"
#include "evaluate/cpu_session.h"

namespace kernelpro {

struct TimingPlan {
  double timeout_s = 30;  // of one call
  int max_pairs = 40;
  double budget_s = 1.0;  // after which `enough_pairs` will do
  int enough_pairs = 9;
  double hard_budget_s = 12;  // after which three pairs have to do
  double min_effect = 0.005;
  double alpha = 0.02;     // of a wrong declaration on this case, all looks together
  bool stop_early = true;  // as soon as it is decided (base/sequential.h)
  std::uint64_t seed = 0;  // of poisons, orders and choices
};

struct Timed {
  Timing timing;
  std::optional<Interval> ratio;  // incumbent's time over candidate's
  double max_error = 0;
  std::map<std::string, double> observed;
};

using SessionMaker = std::function<Result<CpuSession::Started>(const Binary&)>;

// `candidate` has passed its checks. `incumbent` may be null; when it fails here, the ratio is
// left out. An Outcome: what went wrong with the candidate. REQUIRES: state.slots >= 2.
Result<std::variant<Timed, Outcome>> time_case(const CpuCase& state, const SessionMaker& start,
                                               const Binary& candidate, const Binary* incumbent,
                                               const TimingPlan& plan);

}  // namespace kernelpro
