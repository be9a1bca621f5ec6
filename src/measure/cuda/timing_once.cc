// SPDX-License-Identifier: Apache-2.0
// Single timed calls, for contents outside ordinary passes.
#include <algorithm>
#include <numeric>

#include "base/clock.h"
#include "measure/cuda/host_side.h"
#include "measure/cuda/timing.h"

namespace kernelpro {

Result<std::variant<std::vector<double>, Outcome>> call_once(CudaLink& judge, CudaWorker& worker,
                                                             const CudaCase& state,
                                                             const std::vector<int>& sets, int warm,
                                                             const CudaTimingPlan& plan) {
  using Times = std::variant<std::vector<double>, Outcome>;
  SetKeys keys;
  for (const int set : sets) keys.emplace_back(set, fresh_secret());
  KP_TRY(poison(judge, state, keys, true));
  if (worker.module) {
    std::vector<int> all = sets;
    if (warm >= 0) all.insert(all.begin(), warm);
    KP_ASSIGN(Times times,
              take_turns(judge, worker, state, "candidate", all, {true, plan.timeout_s, "timing"}));
    if (auto* us = std::get_if<std::vector<double>>(&times); us != nullptr && warm >= 0) {
      us->erase(us->begin());
    }
    return times;
  }
  Json steps = Json::array();
  if (warm >= 0) steps.push_back({{"subject", "candidate"}, {"set", warm}, {"timed", false}});
  for (const int set : sets) {
    steps.push_back({{"subject", "candidate"}, {"set", set}, {"timed", true}});
  }
  const double start = real_clock().now_s();
  const Answer answer = worker.link.ask(
      {{"do", "time"},
       {"case", state.c->name},
       {"key", fresh_secret()},
       {"reload", Json::array({"candidate"})},
       {"steps", steps}},
      plan.timeout_s * static_cast<double>(std::min<std::size_t>(steps.size(), 4)) + 5);
  const double wall_us = (real_clock().now_s() - start) * 1e6;
  const auto* reply = std::get_if<Reply>(&answer);
  if (reply == nullptr)
    return Times(worker_outcome(answer, "timing case " + state.c->name, state.c->name));
  std::vector<double> times;
  for (const Json& us : JsonReader(reply->json).array("times")) {
    if (us.is_number()) times.push_back(us.get<double>());
  }
  const double sum = std::accumulate(times.begin(), times.end(), 0.0);
  if (times.size() != sets.size() || sum > wall_us) {
    return Times(Rejected{"timing", "the device's times do not fit the parent's clock"});
  }
  return Times(std::move(times));
}

Result<std::variant<std::vector<double>, Outcome>> time_once(CudaLink& judge, CudaWorker& worker,
                                                             const CudaCase& state,
                                                             const std::vector<int>& sets, int warm,
                                                             const CudaTimingPlan& plan,
                                                             double* max_error) {
  using Times = std::variant<std::vector<double>, Outcome>;
  KP_ASSIGN(Times called, call_once(judge, worker, state, sets, warm, plan));
  if (std::holds_alternative<Outcome>(called)) return called;
  std::vector<int> each = sets;
  std::sort(each.begin(), each.end());
  each.erase(std::unique(each.begin(), each.end()), each.end());
  KP_ASSIGN(auto wrong, verify(judge, state, each, true, {}, max_error));
  if (wrong) return Times(std::move(wrong->outcome));
  return called;
}

}  // namespace kernelpro
