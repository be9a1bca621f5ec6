// SPDX-License-Identifier: Apache-2.0
// Times a candidate on one case, against an incumbent turn by turn on the same buffers, or alone.
//
// The supervisor's clock alone counts: it runs from the moment that a stopped worker may go on, its
// inputs just revealed, until all its threads are seen to have stopped again. What an order costs
// by itself is measured with a worker of ours that runs no candidate's code, and taken off both
// sides; nothing that the candidate's process says or does is credited to it.
//
// Every timed call works on inputs that its process has never seen: what a kernel remembers of
// earlier calls helps nothing, and all outputs of timed calls are compared. When a process has seen
// all inputs, a new one takes its place.
//
// What others do on the machine is observed during each turn (machine/host_load.h), and judged
// before its time is looked at. A disturbed turn is measured again, and a disturbed pair dropped
// whole, until TimingPlan::most_dropped; then the machine is taken as it is, and the verdict says
// so.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/error.h"
#include "base/statistics/statistics.h"
#include "core/evaluation.h"
#include "measure/cpu/case.h"
#include "measure/cpu/session.h"

namespace kernelpro {

struct TimingPlan {
  double timeout_s = 30;  // of one call
  int max_pairs = 40;
  double budget_s = 1.0;  // after which `enough_pairs` will do
  int enough_pairs = 9;
  double hard_budget_s = 12;  // after which three pairs have to do; a clear ratio needs fewer
  double min_effect = 0.005;
  double alpha = 0.02;     // of a wrong declaration on this case, all looks together
  bool stop_early = true;  // as soon as it is decided (base/statistics/contest.h)
  int most_dropped = 10;   // disturbed pairs and turns that are measured again, at most
  std::uint64_t seed = 0;  // of poisons, orders and choices
};

struct Timed {
  Timing timing;
  std::optional<Interval> ratio;  // incumbent's time over candidate's
  double max_error = 0;
  // "cpu.threads_busy", "load.foreign_cpu" (share of the machine that others took while turns that
  // count were measured), "load.pairs_dropped", "load.pairs_disturbed" (that count all the same)
  // ...
  std::map<std::string, double> observed;
  std::string note;  // on a machine that never calmed down; "" else
};

using SessionMaker = std::function<Result<CpuSession::Started>(const Binary&)>;

// `candidate` has passed its checks. `incumbent` may be null; when it fails here, the ratio is
// left out. An Outcome: what went wrong with the candidate. REQUIRES: state.slots >= 2.
Result<std::variant<Timed, Outcome>> time_case(const CpuCase& state, const SessionMaker& start,
                                               const Binary& candidate, const Binary* incumbent,
                                               const TimingPlan& plan);

}  // namespace kernelpro
