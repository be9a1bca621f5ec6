// SPDX-License-Identifier: Apache-2.0
#include "measure/cuda/timing.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "base/clock.h"
#include "base/text.h"
#include "core/task/key.h"
#include "measure/cuda/host_side.h"
#include "measure/cuda/passes.h"

namespace kernelpro {

namespace {

constexpr double kNoWarmUpUs = 2000;  // longer calls do not notice a cold start
constexpr double kSlowUs = 50'000;    // longer calls are timed on one set per pass
constexpr int kMostSlowSets = 1;
constexpr double kLongUs = 1000;   // a few calls longer than this are as good as many
constexpr int kMostTimes = 4;      // times max_samples, while the interval is wide
constexpr double kNarrow = 0.005;  // interval width, over its middle, that needs no more
// Fresh inputs: the longest that the reference may take for a set, over a call with all overhead,
// and what is always accepted; and all sets together, over the calls' budget.
constexpr double kMostReference = 10, kQuickReference = 0.03;
constexpr double kMostFilling = 4;
// A busy machine makes a reference seem slow: a short one is run again for so many seconds.
constexpr double kMoreSeconds = 0.3;
constexpr double kLeastLimit = 2, kLimitFactor = 20;  // of a call, over a usual one
constexpr int kOftenLooked = 8;  // passes: half of them are looked at, then one in 16
// Fewest pairs of a comparison, however slow: one shows no scatter.
constexpr int kFewestPairs = 2;
constexpr int kRange = 6;       // pairs from which on their range covers the median with 95 %
constexpr int kFirstLook = 12;  // pairs until the sequential test may decide
// Of a screening: pairs until it may end and at most, the chance that it may take for an end too
// early, and a ratio below which two pairs are enough.
constexpr int kFirstScreened = 6, kMostScreened = 16;
constexpr double kScreenAlpha = 0.5, kFarBehind = 0.9;

SequentialSettings settings_of(const CudaTimingPlan& plan) {
  if (plan.screening) return {kScreenAlpha, plan.min_effect, kFirstScreened, 1.5, kMostScreened};
  return {plan.alpha, plan.min_effect, kFirstLook, 1.5, plan.max_pairs};
}

using StepTimes = std::variant<std::vector<double>, Outcome>;

class Timer {
 public:
  Timer(CudaLink& judge, CudaReference& reference, CudaWorker& candidate, CudaWorker* incumbent,
        CudaCase& state, const CudaTimingPlan& plan, bool fresh, double* max_error)
      : judge_(judge),
        reference_(reference),
        candidate_(candidate),
        incumbent_(incumbent),
        state_(state),
        plan_(plan),
        max_error_(max_error),
        fresh_(fresh),
        spare_(fresh_ && state.plan.extra > 0 && !probes_need_spare() ? state.spare() : -1),
        seen_{std::vector<char>(static_cast<std::size_t>(state.plan.rotation), true),
              std::vector<char>(static_cast<std::size_t>(state.plan.rotation), true)} {}

  Result<std::variant<CudaTimed, Outcome>> run() {
    KP_TRY(call_incumbent());
    KP_TRY(poison(judge_, state_, fresh_keys(), false));
    KP_TRY(fill_spare());
    std::vector<PassStep> first_steps;
    std::vector<double> first_us;
    // The first pass warms up and estimates how long a call takes, unless it is known to be long.
    const bool slow = plan_.hint_us > kSlowUs;
    if (slow) learn_from(plan_.hint_us);
    for (std::uint64_t pass = slow ? 1 : 0;; ++pass) {
      const std::uint64_t number = pass == 0 ? 0 : pass + 1;  // couples are (2, 3), (4, 5) ...
      std::vector<PassStep> steps = plan_pass(state_.plan.rotation, spare_, incumbent_ != nullptr,
                                              warm_up_, at_most_, number, order_);
      KP_TRY(add_probes(&steps));
      if (fresh_ && pass != 0) {
        KP_ASSIGN(auto outcome, refresh(steps));
        if (outcome) return {std::move(*outcome)};
      }
      // Such a pass is looked at in full: what is written beside tensors, too.
      if (has_probe(steps)) KP_TRY(poison(judge_, state_, fresh_keys(), true));
      KP_ASSIGN(StepTimes times, run_pass(steps, number));
      if (auto* outcome = std::get_if<Outcome>(&times)) return {blamed(steps, std::move(*outcome))};
      std::vector<double>& us = std::get<std::vector<double>>(times);
      if (us.empty()) continue;  // the incumbent is gone
      if (pass == 0) {
        learn(steps, us);
        if (fresh_ || spent_us_ < plan_.budget_s * 1e6) continue;
      }
      add(steps, us);
      if (incumbent_ == nullptr) {
        if (enough_alone() && probed()) break;
        continue;
      }
      if (number % 2 == 0 && pass != 0) {
        first_steps = steps;
        first_us = us;
        continue;
      }
      if (pass != 0) {
        for (const double ratio : couple_ratios(first_steps, first_us, steps, us)) {
          if (!sequential_.done()) sequential_.add(ratio);
          ratios_.push_back(ratio);
        }
      }
      if (pass != 0 && enough_paired() && probed()) break;
    }
    return {result()};
  }

  // No times: the incumbent failed, perhaps before its opponent's turn. From now on the candidate
  // is timed alone.
  Result<StepTimes> run_pass(const std::vector<PassStep>& steps, std::uint64_t number) {
    Result<StepTimes> times = call(steps, number);
    if (!times || std::holds_alternative<Outcome>(*times)) return times;
    if (std::get<std::vector<double>>(*times).empty()) {
      incumbent_ = nullptr;
      KP_TRY(poison(judge_, state_, fresh_keys(), false));
      return times;
    }
    // Before anything is poisoned anew.
    for (const PassStep& step : steps) {
      if (!step.probe) continue;
      KP_TRY(plan_.probes->look(step.set));
      ++probes_;
    }
    std::vector<int> mine, others;  // by the last writer
    for (int set = 0; set < state_.plan.rotation; ++set) {
      const auto last = std::find_if(steps.rbegin(), steps.rend(),
                                     [&](const PassStep& step) { return step.set == set; });
      if (last != steps.rend()) (last->candidate ? mine : others).push_back(set);
    }
    double ignored = 0;
    if (!others.empty()) {
      KP_ASSIGN(const auto wrong, verify(judge_, state_, others, false, {}, &ignored));
      if (wrong) incumbent_fault_ = outcome_summary(wrong->outcome);
    }
    const std::uint64_t one_in = passes_++ < kOftenLooked ? 2 : 16;
    const bool look = plan_.look && fresh_secret() % one_in == 0;
    if (mine.empty()) {
      KP_TRY(poison(judge_, state_, fresh_keys(), false));
      return times;
    }
    const SetKeys poisons = look ? SetKeys() : fresh_keys();
    KP_ASSIGN(auto wrong, verify(judge_, state_, mine, has_probe(steps), poisons, max_error_));
    if (wrong) {  // perhaps because it changed its inputs in a call before
      KP_ASSIGN(const bool changed, forget_broken_sets(judge_, state_));
      const bool ruled = std::holds_alternative<Rejected>(wrong->outcome);
      return StepTimes(changed && !ruled ? Outcome(changed_inputs()) : std::move(wrong->outcome));
    }
    if (look) {
      KP_TRY(plan_.look(state_, mine[fresh_secret() % mine.size()]));
      KP_TRY(poison(judge_, state_, fresh_keys(), false));
    }
    return times;
  }

 private:
  SetKeys fresh_keys() const {
    SetKeys all;
    for (int set = 0; set < state_.plan.rotation; ++set) all.emplace_back(set, fresh_secret());
    return all;
  }

  // The first call in a module's process may tune it, for seconds: it is not timed, and does not
  // count in what may be spent.
  Result<void> call_incumbent() {
    if (incumbent_ == nullptr || !incumbent_->module) return {};
    KP_ASSIGN(const auto turns, take_turns(judge_, *incumbent_, state_, "incumbent", {0},
                                           {false, plan_.timeout_s, "preparing to time"}));
    if (const auto* outcome = std::get_if<Outcome>(&turns)) {
      incumbent_fault_ = outcome_summary(*outcome);
      incumbent_ = nullptr;
    }
    return {};
  }

  // The set of untimed calls needs valid inputs too.
  Result<void> fill_spare() {
    if (spare_ < 0) return {};
    const auto& held = state_.contents[static_cast<std::size_t>(spare_)];
    if (held && held->kind == DrawKind::kGiven) return {};
    KP_TRY(reference_.fill(state_, spare_, {fresh_key(), DrawKind::kGiven}));
    return {};
  }

  // New contents for each set on which a step would be timed although its kernel has seen them.
  // An Outcome: an input was changed.
  Result<std::optional<Outcome>> refresh(const std::vector<PassStep>& steps) {
    std::vector<int> sets;
    for (const PassStep& step : steps) {
      if (!step.timed || step.probe) continue;
      if (seen_[step.candidate][static_cast<std::size_t>(step.set)] == 0) continue;
      if (std::find(sets.begin(), sets.end(), step.set) == sets.end()) sets.push_back(step.set);
    }
    if (!sets.empty()) {
      const double start = real_clock().now_s();
      KP_ASSIGN(const bool changed, forget_broken_sets(judge_, state_));
      if (changed) return std::optional<Outcome>(changed_inputs());
      for (const int set : sets) {
        KP_TRY(reference_.fill(state_, set, {fresh_key(), DrawKind::kGiven}));
        for (auto& seen : seen_) seen[static_cast<std::size_t>(set)] = false;
      }
      filled_s_ += real_clock().now_s() - start;
    }
    for (const PassStep& step : steps) {
      if (step.set == spare_ || step.probe) continue;
      seen_[step.candidate][static_cast<std::size_t>(step.set)] = true;
    }
    return std::optional<Outcome>();
  }

  // Where there is one set beside the rotation, it cannot hold a probe and serve untimed calls.
  bool probes_need_spare() const {
    return plan_.probes != nullptr && plan_.probes->chance() > 0 && state_.plan.extra == 1;
  }

  Result<void> add_probes(std::vector<PassStep>* steps) {
    if (plan_.probes == nullptr) return {};
    std::size_t wanted = 0;
    for (std::size_t k = timed_calls(*steps); k > 0; --k) {
      const double drawn = static_cast<double>(fresh_secret() >> 11) * 0x1p-53;
      if (drawn < plan_.probes->chance()) ++wanted;
    }
    if (wanted == 0 && probes_ == 0 && out_of_budget()) wanted = 1;
    if (wanted == 0) return {};
    KP_ASSIGN(const std::vector<int> sets, plan_.probes->prepare(wanted));
    if (sets.empty()) no_probes_ = true;
    place_probes(sets, fresh_secret(), steps);
    return {};
  }

  // A candidate's fault in a pass is perhaps one in a probe.
  Outcome blamed(const std::vector<PassStep>& steps, Outcome outcome) {
    std::vector<int> sets;
    for (const PassStep& step : steps) {
      if (step.probe) sets.push_back(step.set);
    }
    if (!sets.empty()) plan_.probes->blame(sets, outcome);
    return outcome;
  }

  static bool has_probe(const std::vector<PassStep>& steps) {
    return std::ranges::any_of(steps, &PassStep::probe);
  }

  // Whether there were as many probes as are wanted, or one where calls are too long for that.
  bool probed() const {
    if (plan_.probes == nullptr || no_probes_ || plan_.probes->chance() <= 0) return true;
    return out_of_budget() ? probes_ > 0 : plan_.probes->enough();
  }

  // The longest that a call may take. The candidate's on a probe's contents may hang; the incumbent
  // gets none of these, and may tune itself in the first call of its process.
  double limit_s(bool candidates) const {
    if (!candidates || plan_.probes == nullptr || plan_.hint_us <= 0) return plan_.timeout_s;
    return std::min(plan_.timeout_s, kLeastLimit + kLimitFactor * plan_.hint_us * 1e-6);
  }

  // One command to each worker that has steps. Who comes first is drawn for every couple of passes,
  // and the other one does in its second pass, so that what drifts meanwhile cancels.
  Result<StepTimes> call(const std::vector<PassStep>& steps, std::uint64_t number) {
    std::vector<double> all(steps.size(), 0);
    if (number % 2 == 0) candidate_first_ = (fresh_secret() & 1) != 0;
    const bool candidate_first = candidate_first_ == (number % 2 == 0);
    for (const bool candidates : {candidate_first, !candidate_first}) {
      const char* name = candidates ? "candidate" : "incumbent";
      Json asked = Json::array();
      std::vector<std::size_t> places;
      for (std::size_t i = 0; i < steps.size(); ++i) {
        if (steps[i].candidate != candidates) continue;
        asked.push_back({{"subject", name}, {"set", steps[i].set}, {"timed", steps[i].timed}});
        places.push_back(i);
      }
      if (places.empty()) continue;
      CudaWorker& worker = candidates ? candidate_ : *incumbent_;
      if (incumbent_ != nullptr && (candidate_.host || incumbent_->host)) {
        // What a stopped process left on the GPU would slow down the other.
        KP_ASSIGN(const bool quiet, await_quiet(judge_, usual_launch_us()));
        busy_ = busy_ || !quiet;
      }
      if (worker.module) {
        std::vector<int> sets;
        for (const std::size_t place : places) sets.push_back(steps[place].set);
        KP_ASSIGN(auto turns, take_turns(judge_, worker, state_, name, sets,
                                         {true, limit_s(candidates), "timing"}));
        if (auto* outcome = std::get_if<Outcome>(&turns)) {
          if (candidates) return StepTimes(std::move(*outcome));
          incumbent_fault_ = outcome_summary(*outcome);
          return StepTimes(std::vector<double>());
        }
        const auto& us = std::get<std::vector<double>>(turns);
        for (std::size_t k = 0; k < places.size(); ++k) {
          all[places[k]] = us[k];
          spent_us_ += us[k];
        }
        continue;
      }
      const double start = real_clock().now_s();
      const Answer answer = worker.link.ask(
          {{"do", "time"},
           {"case", state_.c->name},
           {"key", fresh_secret()},
           {"reload", Json::array({name})},
           {"steps", asked}},
          limit_s(candidates) * static_cast<double>(std::min<std::size_t>(places.size(), 4)) + 5);
      const double wall_us = (real_clock().now_s() - start) * 1e6;
      auto fault = read_times(answer, wall_us, steps, places, &all);
      if (!fault) continue;
      if (candidates) return StepTimes(std::move(*fault));
      incumbent_fault_ = outcome_summary(*fault);
      return StepTimes(std::vector<double>());
    }
    return StepTimes(std::move(all));
  }

  // The times of one worker's steps, which are at `places`; or its fault.
  std::optional<Outcome> read_times(const Answer& answer, double wall_us,
                                    const std::vector<PassStep>& steps,
                                    const std::vector<std::size_t>& places,
                                    std::vector<double>* all) {
    const auto* reply = std::get_if<Reply>(&answer);
    if (reply == nullptr) {
      return worker_outcome(answer, "timing case " + state_.c->name, state_.c->name);
    }
    const Json& times = JsonReader(reply->json).array("times");
    double sum = 0;
    for (std::size_t k = 0; k < places.size(); ++k) {
      const bool given = k < times.size() && times[k].is_number();
      const double us = given ? times[k].get<double>() : 0;
      if (steps[places[k]].timed && !(us > 0)) {
        return Rejected{"timing", "a timed call has no time"};
      }
      (*all)[places[k]] = us;
      sum += us;
    }
    if (sum > wall_us) {
      return Rejected{"timing", "the device's times do not fit the parent's clock"};
    }
    spent_us_ += sum;
    return std::nullopt;
  }

  double usual_launch_us() const {
    if (candidate_.host) return candidate_.host->launch_us;
    return incumbent_ != nullptr && incumbent_->host ? incumbent_->host->launch_us : 0;
  }

  void learn(const std::vector<PassStep>& steps, const std::vector<double>& us) {
    double longest = 0;
    for (std::size_t i = 0; i < steps.size(); ++i) longest = std::max(longest, us[i]);
    learn_from(longest);
  }
  void learn_from(double longest) {
    warm_up_ = longest < kNoWarmUpUs;
    if (longest > kSlowUs) at_most_ = kMostSlowSets;
  }

  void add(const std::vector<PassStep>& steps, const std::vector<double>& us) {
    for (std::size_t i = 0; i < steps.size(); ++i) {
      if (!steps[i].timed || !steps[i].candidate || steps[i].probe) continue;
      candidate_us_.push_back(us[i]);
      candidate_sets_.push_back(steps[i].set);
    }
  }

  bool out_of_budget() const {
    return spent_us_ > plan_.budget_s * 1e6 || filled_s_ > kMostFilling * plan_.budget_s;
  }
  bool enough_alone() const {
    const int samples = static_cast<int>(candidate_us_.size());
    if (samples == 0) return false;
    if (out_of_budget() || samples >= plan_.max_samples * kMostTimes) return true;
    const Interval interval = median_interval(candidate_us_);
    // Ties of a coarse clock look like certainty: short calls get all their samples.
    const int least = interval.mid < kLongUs ? plan_.max_samples : plan_.min_samples;
    return samples >= least && interval.high - interval.low < kNarrow * interval.mid;
  }
  bool enough_paired() const {
    if (candidate_us_.empty()) return false;
    if (!incumbent_fault_.empty() || busy_) return true;
    if (pairs() < kFewestPairs) return false;
    if (out_of_budget()) return true;
    if (plan_.screening) return sequential_.done() || far_behind();
    return static_cast<int>(candidate_us_.size()) >= plan_.min_samples &&
           (sequential_.done() || pairs() >= plan_.max_pairs);
  }

  int pairs() const { return static_cast<int>(ratios_.size()); }
  bool far_behind() const { return std::ranges::max(ratios_) < kFarBehind; }

  CudaTimed result() const {
    CudaTimed timed;
    const Interval interval = median_interval(candidate_us_);
    timed.timing = {state_.c->name,
                    std::clamp(grouped_median(candidate_us_), interval.low, interval.high),
                    interval.low,
                    interval.high,
                    static_cast<int>(candidate_us_.size()),
                    candidate_.module ? turn_method(candidate_, state_) : "graph replay, L2 cold"};
    timed.times_us = candidate_us_;
    timed.sets = candidate_sets_;
    timed.paired = incumbent_ != nullptr;
    timed.warm_up = warm_up_;
    timed.at_most = at_most_;
    timed.fresh = fresh_;
    if (!incumbent_fault_.empty()) {
      timed.note = "the kernel it was compared with failed while timed: " + incumbent_fault_;
    } else if (busy_) {
      timed.note =
          "it was not compared: the GPU was busy with another process's work when one of the two "
          "was to be timed";
    } else if (!ratios_.empty()) {
      const bool few = plan_.screening || pairs() < kRange;
      timed.ratio = few ? ratio_interval(ratios_) : sequential_.interval();
    }
    return timed;
  }

  CudaLink& judge_;
  CudaReference& reference_;
  CudaWorker& candidate_;
  CudaWorker* incumbent_;
  CudaCase& state_;
  const CudaTimingPlan& plan_;
  const std::uint64_t order_ = fresh_secret();
  double* max_error_;
  const bool fresh_;
  const int spare_;                        // the set of untimed calls; -1: none
  std::array<std::vector<char>, 2> seen_;  // by incumbent and candidate, by set
  int passes_ = 0;
  int probes_ = 0;                // calls on probes' contents
  bool no_probes_ = false;        // none can be prepared
  bool candidate_first_ = false;  // in the current couple of passes
  double filled_s_ = 0;
  SequentialRatio sequential_{settings_of(plan_)};
  std::vector<double> ratios_;  // of all pairs
  bool warm_up_ = true;
  int at_most_ = 64;
  double spent_us_ = 0;
  std::vector<double> candidate_us_;
  std::vector<int> candidate_sets_;
  std::string incumbent_fault_;
  bool busy_ = false;  // the GPU, with another process's work
};

}  // namespace

Rejected changed_inputs() {
  return {"input-mutation", "an input was changed while calls were timed"};
}

// Whether each timed call can have inputs that its kernel has never seen: the quickest run of the
// reference so far decides.
static Result<bool> can_refresh(CudaReference& reference, CudaCase& state,
                                const CudaTimingPlan& plan) {
  const double most = std::max(kQuickReference, kMostReference * plan.hint_us * 1e-6);
  const double end = real_clock().now_s() + kMoreSeconds;
  while (state.reference_s > most && state.reference_s < kMoreSeconds &&
         real_clock().now_s() < end) {
    KP_TRY(reference.fill(state, 0, {fresh_key(), DrawKind::kGiven}));
  }
  return state.reference_s <= most;
}

Result<std::variant<CudaTimed, Outcome>> time_cuda_case(CudaLink& judge, CudaReference& reference,
                                                        CudaWorker& candidate,
                                                        CudaWorker* incumbent, CudaCase& state,
                                                        const CudaTimingPlan& plan,
                                                        double* max_error) {
  bool fresh = false;
  if (plan.fresh) {
    KP_ASSIGN(fresh, can_refresh(reference, state, plan));
  }
  return Timer(judge, reference, candidate, incumbent, state, plan, fresh, max_error).run();
}

}  // namespace kernelpro
