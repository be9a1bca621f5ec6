// SPDX-License-Identifier: Apache-2.0
#include "evaluate/cuda_timing.h"

#include <algorithm>
#include <numeric>

#include "base/clock.h"
#include "base/text.h"

namespace kernelpro {

namespace {

constexpr int kTurnsPerBatch = 10;

std::vector<double> times_of(const Reply& reply, const char* subject) {
  std::vector<double> times;
  const auto all = reply.json.find("times");
  if (all == reply.json.end() || !all->is_object()) return times;
  for (const Json& value : JsonReader(*all).array(subject)) {
    if (value.is_number()) times.push_back(value.get<double>());
  }
  return times;
}

// Enough turns? The interval is clear of a tie, or lies within one.
bool settled(const std::vector<double>& incumbent, const std::vector<double>& candidate,
             double min_effect) {
  const Interval ratio = paired_ratio(incumbent, candidate);
  const bool differs = ratio.low > 1 + min_effect || ratio.high < 1 - min_effect;
  const bool ties = ratio.low > 1 - min_effect && ratio.high < 1 + min_effect;
  return differs || ties;
}

}  // namespace

Outcome worker_outcome(const Answer& answer, const std::string& phase) {
  if (const auto* lost = std::get_if<Lost>(&answer)) {
    if (lost->timed_out) return TimedOut{lost->seconds, phase};
    return Crashed{lost->how + " while " + phase, lost->output};
  }
  const Refusal& refusal = std::get<Refusal>(answer);
  if (refusal.rule == "plan") return Rejected{"plan", refusal.text};
  return Crashed{refusal.text + " while " + phase, ""};
}

double physical_floor_us(const CudaCase& state, const Machine& machine) {
  if (machine.theoretical_bytes_per_s <= 0) return 0;
  double inputs = 0, outputs = 0;
  for (const JudgeTensor& t : state.judged) {
    (t.output ? outputs : inputs) += static_cast<double>(t.bytes);
  }
  const double bytes = inputs + std::max(0.0, outputs - machine.l2_bytes);
  return 0.95 * bytes / machine.theoretical_bytes_per_s * 1e6;
}

Result<std::variant<CudaTimed, Outcome>> time_cuda_case(CudaLink& judge, CudaLink& worker,
                                                        const CudaCase& state, bool incumbent,
                                                        const CudaTimingPlan& plan,
                                                        double* max_error) {
  using TimedOrOutcome = std::variant<CudaTimed, Outcome>;
  const std::string phase = "timing case " + state.c->name;
  Json subjects = Json::array({"candidate"});
  if (incumbent) subjects.push_back("incumbent");
  std::vector<double> candidate_us, incumbent_us;
  int turns = 3;  // the first batch warms up and shows how long a turn takes
  bool warm = false;
  double spent_us = 0;
  for (std::uint64_t batch = 0;; ++batch) {
    // From a start that nobody can know through all sets: what a __device__ variable remembers of
    // one is wrong for the next.
    const auto set = static_cast<int>((kp::mix64(plan.seed) + batch) % kCudaSets);
    KP_TRY(poison(judge, state, set, kp::mix64(plan.seed ^ (batch * 2 + 1))));
    Answer bound = worker.ask({{"do", "bind"}, {"set", set}}, plan.timeout_s);
    if (!std::holds_alternative<Reply>(bound)) return TimedOrOutcome{worker_outcome(bound, phase)};
    const double start = real_clock().now_s();
    // `turn` makes the candidate the last to run, so that its outputs are the ones compared.
    Answer timed = worker.ask({{"do", "time"},
                               {"subjects", subjects},
                               {"count", turns},
                               {"turn", turns % 2 == 0 ? 0 : 1}},
                              plan.timeout_s * (incumbent ? 2 : 1) * std::min(turns, 4) + 5);
    const double wall_us = (real_clock().now_s() - start) * 1e6;
    if (!std::holds_alternative<Reply>(timed)) return TimedOrOutcome{worker_outcome(timed, phase)};
    const Result<std::optional<Outcome>> verdict = judge_set(judge, state, set, false, max_error);
    if (!verdict) return tl::unexpected<Error>(verdict.error());
    if (*verdict) return TimedOrOutcome{**verdict};

    const std::vector<double> a = times_of(std::get<Reply>(timed), "candidate");
    const std::vector<double> b = times_of(std::get<Reply>(timed), "incumbent");
    const double sum =
        std::accumulate(a.begin(), a.end(), 0.0) + std::accumulate(b.begin(), b.end(), 0.0);
    if (a.size() != static_cast<std::size_t>(turns) || (incumbent && b.size() != a.size()) ||
        sum > wall_us) {
      return TimedOrOutcome{Rejected{"timing", "the device's times do not fit the parent's clock"}};
    }
    spent_us += sum;
    if (!warm) {
      warm = true;
      const double turn_us = sum / turns;
      turns = std::clamp(static_cast<int>(plan.budget_s * 1e6 / std::max(turn_us, 1.0)), 5,
                         kTurnsPerBatch);
      continue;
    }
    candidate_us.insert(candidate_us.end(), a.begin(), a.end());
    incumbent_us.insert(incumbent_us.end(), b.begin(), b.end());
    const int done = static_cast<int>(candidate_us.size());
    const bool out_of_budget = spent_us > plan.budget_s * 1e6 && done >= 5;
    const bool enough = done >= plan.min_turns &&
                        (!incumbent || settled(incumbent_us, candidate_us, plan.min_effect));
    if (done >= plan.max_turns || out_of_budget || enough) break;
  }
  CudaTimed result;
  const Interval interval = median_interval(candidate_us);
  result.timing = {state.c->name,
                   interval.mid,
                   interval.low,
                   interval.high,
                   static_cast<int>(candidate_us.size()),
                   "graph replay, L2 cold"};
  if (incumbent) result.ratio = paired_ratio(incumbent_us, candidate_us);
  return TimedOrOutcome{std::move(result)};
}

}  // namespace kernelpro
