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

// The stations to try, one after the other: the first may have failed during the search.
std::vector<StationSettings> each_alone(const StationSettings& all) {
  std::vector<StationSettings> each;
  const auto with = [&](const std::string& gpu, const std::vector<std::string>& stations) {
    StationSettings& one = each.emplace_back(all);
    one.gpu = gpu;
    one.gpus.clear();
    one.stations = stations;
  };
  for (const std::string& station : all.stations) with(all.gpu, {station});
  if (each.empty()) {
    for (const std::string& gpu : all.gpus) with(gpu, {});
  }
  if (each.empty()) with(all.gpu, {});
  return each;
}

// The same on the first station that can. Fails as the last one does.
Result<std::optional<Evaluation>> both_somewhere(const StationMaker& maker, const Task& task,
                                                 const StationSettings& settings,
                                                 const Candidate& winner, const Candidate& start) {
  Result<std::optional<Evaluation>> evaluation = std::optional<Evaluation>();
  for (const StationSettings& one : each_alone(settings)) {
    const Stations opened = maker(task, one);
    evaluation = opened.front() ? both(**opened.front(), winner, start)
                                : tl::unexpected<Error>(opened.front().error());
    if (evaluation || cancel_requested()) break;
  }
  return evaluation;
}

}  // namespace

Result<bool> Bench::measure_held_out(const Known& winner, const Known& start,
                                     std::vector<HeldOut>* cases) {
  if (parts_.maker == nullptr) return true;
  for (const Task& task : held_out_tasks(*parts_.task, parts_.settings->target)) {
    if (stopped() || cancel_requested()) return false;
    phase("measuring a held-out case");
    HeldOut& one = cases->emplace_back(HeldOut{task.cases.front().name, {}});
    auto evaluation =
        both_somewhere(*parts_.maker, task, *parts_.settings, winner.candidate, start.candidate);
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
