// SPDX-License-Identifier: Apache-2.0
// CudaTrial: probes among timed calls. They take the places of some, at random, in the same passes:
// which call is only timed can be learnt neither from its place nor from how many came before.
#include <algorithm>
#include <utility>

#include "core/task/key.h"
#include "measure/cuda/host_side.h"
#include "measure/cuda/trial.h"

namespace kernelpro {

namespace {

constexpr double kUsualSamples = 20;  // calls among which all kinds are to lie
constexpr double kLeastChance = 1 / 6., kMostChance = 1 / 2.;
constexpr double kLaterChance = 1 / 12.;  // once each kind has had its turn
constexpr std::size_t kFewCostly = 1;     // kinds where contents are costly ...
constexpr std::size_t kAllCostly = 3;     // ... when all are to run

}  // namespace

// One process's turn at the kinds that were chosen for the case.
class CudaTrial::ProbesInPasses : public TimedProbes {
 public:
  ProbesInPasses(CudaTrial& trial, CudaCase& state, ChosenProbes& chosen)
      : trial_(trial), state_(state), chosen_(chosen) {
    if (state.plan.extra == 0 || trial.crashed_) return;
    waiting_ = chosen.order;
    if (chosen.costly) {
      const std::size_t most = trial.shop_.probes_each > 0 ? kFewCostly : kAllCostly;
      waiting_.resize(std::min(waiting_.size(), most));
    }
    chance_ =
        std::clamp(static_cast<double>(waiting_.size()) / kUsualSamples, kLeastChance, kMostChance);
  }

  double chance() const override {
    if (!waiting_.empty()) return chance_;
    return shown_.empty() ? 0 : kLaterChance;
  }
  bool enough() const override { return waiting_.empty(); }
  // Of the first probe in the pass that ended the process, or hung.
  const std::optional<ProbeFailure>& fault() const { return fault_; }

  Result<std::vector<int>> prepare(std::size_t most) override {
    placed_.clear();
    SetKeys keys;
    for (std::size_t i = 0; i < waiting_.size() && placed_.size() < most;) {
      const std::size_t place = waiting_[i];
      const int set = state_.probe_set(place);
      if (placed_.contains(set)) {
        ++i;
        continue;
      }
      waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(i));
      KP_ASSIGN(const bool usable, trial_.fill_probe(state_, chosen_.plans[place], set));
      if (!usable) continue;
      placed_[set] = place;
      shown_.push_back(place);
    }
    while (placed_.empty() && !shown_.empty()) {
      const std::size_t at = fresh_secret() % shown_.size();
      const std::size_t place = shown_[at];
      const int set = state_.probe_set(place);
      KP_ASSIGN(const bool usable,
                trial_.fill_probe(state_, chosen_.plans[place], set, chosen_.costly));
      if (usable) placed_[set] = place;
      if (!usable) shown_.erase(shown_.begin() + static_cast<std::ptrdiff_t>(at));
    }
    std::vector<int> sets;
    for (const auto& [set, place] : placed_) {
      sets.push_back(set);
      keys.emplace_back(set, fresh_secret());
    }
    if (!keys.empty()) KP_TRY(poison(trial_.shop_.judge, state_, keys, true));
    return sets;
  }

  Result<void> look(int set) override {
    const std::size_t place = placed_.at(set);
    const std::size_t failed = trial_.failures_.size();
    KP_ASSIGN(const auto outcome, trial_.look_at_probe(state_, chosen_.plans[place].kind, set));
    KP_ASSERT(!outcome);
    const bool right = trial_.failures_.size() == failed;
    chosen_.timed.insert_or_assign(place, right);
    if (!right) std::erase(shown_, place);
    return {};
  }

  void blame(const std::vector<int>& sets, const Outcome& outcome) override {
    const bool crashed = std::holds_alternative<Crashed>(outcome);
    if (perhaps_killed(outcome) || (!crashed && !std::holds_alternative<TimedOut>(outcome))) return;
    const DrawKind kind = chosen_.plans[placed_.at(sets.front())].kind;
    fault_ = probe_failure(kind, state_.c->name, outcome, state_.tensors);
  }

 private:
  CudaTrial& trial_;
  CudaCase& state_;
  ChosenProbes& chosen_;
  std::vector<std::size_t> waiting_, shown_;  // places in the plans
  std::map<int, std::size_t> placed_;         // in the current pass: set, place in the plans
  double chance_ = 0;
  std::optional<ProbeFailure> fault_;
};

// Times the candidate in a worker, with probes among the calls. When it crashes or hangs where a
// probe may be the cause, `blamed_` has it.
Result<std::variant<CudaTimed, Outcome>> CudaTrial::time_with_probes(CudaWorker& worker,
                                                                     CudaWorker* incumbent,
                                                                     CudaCase& state) {
  CudaTimingPlan plan = timing_;
  blamed_.reset();
  if (!shop_.settings.probes || shop_.settings.policy != Policy::kContract) {
    return time_cuda_case(shop_.judge, shop_.reference, worker, incumbent, state, plan,
                          &correct_.max_error);
  }
  KP_ASSIGN(ChosenProbes * kinds, chosen(state));
  // To find out what applies may have taken a set of the rotation.
  for (int set = 0; set < state.plan.rotation; ++set) {
    if (state.contents[static_cast<std::size_t>(set)]) continue;
    KP_TRY(shop_.reference.fill(state, set, {fresh_key(), DrawKind::kGiven}));
  }
  ProbesInPasses probes(*this, state, *kinds);
  plan.probes = &probes;
  auto timed = time_cuda_case(shop_.judge, shop_.reference, worker, incumbent, state, plan,
                              &correct_.max_error);
  blamed_ = probes.fault();
  return timed;
}

// A probe's contents were too much for it: that gives a label, as any failed probe does.
// True: this is so, and no further probes run.
bool CudaTrial::failed_on_a_probe() {
  if (!blamed_) return false;
  failures_.push_back(*blamed_);
  blamed_.reset();
  crashed_ = true;
  return true;
}

// A kernel that ends on a probe's contents is timed without any, in a new process.
CudaTrial::Verdict CudaTrial::time_first(CudaCase& state, CudaWorker* incumbent, CudaTimed* timed) {
  KP_ASSIGN(auto result, time_with_probes(worker_, incumbent, state));
  if (std::holds_alternative<Outcome>(result) && shop_.renew && failed_on_a_probe()) {
    Verdict renewed = renew_worker(state);
    if (!renewed || *renewed) return renewed;
    KP_ASSIGN(result, time_with_probes(worker_, incumbent, state));
  }
  if (auto* outcome = std::get_if<Outcome>(&result)) {
    return std::optional<Outcome>(std::move(*outcome));
  }
  *timed = std::move(std::get<CudaTimed>(result));
  return std::optional<Outcome>();
}

CudaTrial::Verdict CudaTrial::renew_worker(CudaCase& state) {
  KP_TRY(shop_.renew(&worker_));
  settle_in(worker_, *subject_);
  for (const CudaCase& each : shop_.cases) {
    if (!worker_.module || !each.c->timed) continue;
    KP_ASSIGN(auto died, measure_overhead(shop_.judge, worker_, each));
    if (died) return std::optional<Outcome>(std::move(*died));
  }
  const auto at = static_cast<std::size_t>(&state - shop_.cases.data());
  return load(worker_, "candidate", state, subject_->binaries[at], nullptr);
}

}  // namespace kernelpro
