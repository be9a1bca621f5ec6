// SPDX-License-Identifier: Apache-2.0
// Measures the winner in cases that the search did not see.
#include "base/cancel.h"
#include "run/bench.h"

namespace kernelpro {

namespace {

// The evaluation of the winner in one case, against the start if that is correct there; nullopt:
// cancelled.
Result<std::optional<Evaluation>> both(Station& station, const Candidate& winner,
                                       const Candidate& start) {
  KP_TRY(station.prepare());
  Order order;
  order.observe = false;
  if (winner.content_hash() != start.content_hash()) {
    order.candidate = start;
    KP_ASSIGN(const auto alone, station.measure(order, {}));
    if (!alone.evaluation) return std::optional<Evaluation>();
    order.confirm = alone.evaluation->correct() != nullptr;
    if (order.confirm) order.incumbent = start;
  }
  order.candidate = winner;
  KP_ASSIGN(auto measured, station.measure(order, {}));
  return std::move(measured.evaluation);
}

}  // namespace

Result<bool> Bench::measure_held_out(const Known& winner, const Known& start,
                                     std::vector<HeldOut>* cases) {
  if (parts_.maker == nullptr) return true;
  StationSettings settings = *parts_.settings;
  settings.gpus.clear();  // one is enough
  if (settings.stations.size() > 1) settings.stations.resize(1);
  for (const Task& task : held_out_tasks(*parts_.task, parts_.settings->target)) {
    if (stopped() || cancel_requested()) return false;
    phase("measuring a held-out case");
    const Stations opened = (*parts_.maker)(task, settings);
    if (!opened.front()) return tl::unexpected<Error>(opened.front().error());
    HeldOut& one = cases->emplace_back(HeldOut{task.cases.front().name, {}});
    auto evaluation = both(**opened.front(), winner.candidate, start.candidate);
    if (cancel_requested()) return false;
    if (!evaluation) {
      one.problem = evaluation.error().message;  // for example, a case too large for this machine
      continue;
    }
    if (!*evaluation) return false;
    one.evaluation = std::move(**evaluation);
  }
  return true;
}

}  // namespace kernelpro
