// SPDX-License-Identifier: Apache-2.0
#include "measure/cuda/audit.h"

#include <algorithm>
#include <cmath>

#include "core/task/key.h"

namespace kernelpro {

namespace {

constexpr double kSlower = 1.05;     // over the median of known contents ...
constexpr double kSlowerUs = 0.5;    // ... plus the clock's steps: slower than that is slow
constexpr double kNearlyAll = 0.75;  // share of fresh contents that must be slow to continue
constexpr double kSure = 0.002;      // chance that ends it early
constexpr double kEnough = 0.02;     // the same, once we have as many as we can afford
constexpr int kMostFresh = 16;
constexpr int kMostRounds = 12;
constexpr double kLarge = 1.25;
constexpr double kMostThrottled = 1.15;  // largest slowdown that clocks may explain
constexpr double kRoundSeconds = 0.02;   // of reference time

double log_choose(int n, int k) {
  return std::lgamma(n + 1.0) - std::lgamma(k + 1.0) - std::lgamma(n - k + 1.0);
}

class Audit {
 public:
  Audit(CudaLink& judge, CudaReference& reference, CudaWorker& worker, CudaCase& state,
        const CudaTimed& timed, const CudaTimingPlan& plan, double* max_error)
      : judge_(judge),
        reference_(reference),
        worker_(worker),
        state_(state),
        timed_(timed),
        plan_(plan),
        max_error_(max_error) {}

  Result<std::variant<Freshness, Outcome>> run() {
    learn_known();
    for (int rounds = 1; rounds <= kMostRounds; ++rounds) {
      KP_ASSIGN(std::optional<Outcome> outcome, round());
      if (outcome) return {std::move(*outcome)};
      const int fresh = static_cast<int>(fresh_us_.size());
      if (slow_ < kNearlyAll * fresh) return {Freshness{false, false, known_us_, fresh_us()}};
      if (rounds == 1) continue;
      const double chance = slow_by_chance(slow_, fresh, slow_known_, known_);
      if (chance < kSure) return {verdict()};
      if (fresh >= kMostFresh || rounds == kMostRounds) {
        if (chance < kEnough) return {verdict()};
        break;
      }
    }
    return {Freshness{false, false, known_us_, fresh_us()}};
  }

 private:
  double fresh_us() const { return median(fresh_us_); }
  Freshness verdict() const {
    const bool large = *std::min_element(round_us_.begin(), round_us_.end()) > kLarge * known_us_;
    return {true, large, known_us_, fresh_us()};
  }

  // Each content counts once, with the median of its calls.
  void learn_known() {
    std::vector<std::vector<double>> by_set(static_cast<std::size_t>(state_.plan.rotation));
    for (std::size_t i = 0; i < std::min(timed_.sets.size(), timed_.times_us.size()); ++i) {
      by_set[static_cast<std::size_t>(timed_.sets[i])].push_back(timed_.times_us[i]);
    }
    known_us_ = median(timed_.times_us);
    for (const auto& times : by_set) {
      set_us_.push_back(times.empty() ? known_us_ : median(times));
      if (times.empty()) continue;
      ++known_;
      if (is_slow(set_us_.back())) ++slow_known_;
    }
  }

  bool is_slow(double us) const { return us > kSlower * known_us_ + kSlowerUs; }

  std::vector<int> shuffled_sets() {
    std::vector<int> sets;
    for (int set = 0; set < state_.plan.rotation; ++set) sets.push_back(set);
    for (std::size_t i = sets.size(); i > 1; --i) std::swap(sets[i - 1], sets[fresh_secret() % i]);
    return sets;
  }

  // As many timed calls as an ordinary pass has.
  int calls_of_a_pass() const {
    const int sets = state_.plan.rotation;
    const int all = timed_.paired ? sets / 2 : sets - (timed_.warm_up && sets > 1 ? 1 : 0);
    return std::max(1, std::min(all, timed_.at_most));
  }

  Result<std::optional<Outcome>> round() {
    std::vector<int> sets = shuffled_sets();
    const int calls = calls_of_a_pass();
    const int affordable = static_cast<int>(kRoundSeconds / std::max(state_.reference_s, 1e-4));
    const int fresh = std::clamp(affordable, 1, std::max(1, calls / 2));
    std::vector<int> news(sets.end() - fresh, sets.end());
    sets.resize(sets.size() - static_cast<std::size_t>(fresh));
    const int warm = timed_.warm_up && !sets.empty() ? sets.back() : -1;
    if (warm >= 0) sets.pop_back();
    // Known contents come first: a kernel cannot yet slow them down on purpose.
    std::vector<int> old(sets.begin(),
                         sets.begin() + std::min<std::ptrdiff_t>(std::ssize(sets), calls - fresh));
    for (const int set : news) {
      KP_TRY(reference_.fill(state_, set, {fresh_key(), DrawKind::kGiven}));
    }
    if (old.empty() && !sets.empty() && fresh_us_.empty()) {
      auto outcome = pass({sets.front()}, {}, warm);
      if (!outcome || *outcome) return outcome;
    }
    return pass(old, news, warm);
  }

  Result<std::optional<Outcome>> pass(const std::vector<int>& old, const std::vector<int>& news,
                                      int warm) {
    std::vector<int> steps = old;
    steps.insert(steps.end(), news.begin(), news.end());
    KP_ASSIGN(auto once, time_once(judge_, worker_, state_, steps, warm, plan_, max_error_));
    if (auto* outcome = std::get_if<Outcome>(&once)) {
      return std::optional<Outcome>(std::move(*outcome));
    }
    const std::vector<double>& us = std::get<std::vector<double>>(once);
    if (fresh_us_.empty() && !old.empty()) {  // later ones may be slow on purpose
      std::vector<double> ratios;
      for (std::size_t k = 0; k < old.size(); ++k) {
        ratios.push_back(us[k] / set_us_[static_cast<std::size_t>(old[k])]);
      }
      throttled_ = std::clamp(median(ratios), 1.0, kMostThrottled);
    }
    std::vector<double> now;
    for (std::size_t k = old.size(); k < us.size(); ++k) {
      now.push_back(us[k] / throttled_);
      if (is_slow(now.back())) ++slow_;
    }
    if (now.empty()) return std::optional<Outcome>();
    fresh_us_.insert(fresh_us_.end(), now.begin(), now.end());
    round_us_.push_back(median(now));
    return std::optional<Outcome>();
  }

  CudaLink& judge_;
  CudaReference& reference_;
  CudaWorker& worker_;
  CudaCase& state_;
  const CudaTimed& timed_;
  const CudaTimingPlan& plan_;
  double* max_error_;
  double known_us_ = 0;
  std::vector<double> set_us_;  // by set: median of its known content
  int known_ = 0, slow_known_ = 0, slow_ = 0;
  double throttled_ = 1;
  std::vector<double> fresh_us_, round_us_;  // all; round medians
};

}  // namespace

double slow_by_chance(int slow_fresh, int fresh, int slow_known, int known) {
  const int slow = slow_fresh + slow_known, all = fresh + known;
  double chance = 0;
  for (int k = slow_fresh; k <= std::min(slow, fresh); ++k) {
    if (slow - k > known) continue;
    chance += std::exp(log_choose(fresh, k) + log_choose(known, slow - k) - log_choose(all, slow));
  }
  return std::min(chance, 1.0);
}

bool slower_beyond_chance(const std::vector<double>& usual_us, const std::vector<double>& other_us,
                          double factor, double slack_us) {
  constexpr double kByChance = 0.001;
  if (usual_us.empty() || other_us.empty()) return false;
  const double slow_us = factor * median(usual_us) + slack_us;
  const auto slow = [&](const std::vector<double>& all) {
    return static_cast<int>(
        std::count_if(all.begin(), all.end(), [&](double us) { return us > slow_us; }));
  };
  return median(other_us) > slow_us &&
         slow_by_chance(slow(other_us), static_cast<int>(other_us.size()), slow(usual_us),
                        static_cast<int>(usual_us.size())) < kByChance;
}

Result<std::variant<Freshness, Outcome>> audit_fresh(CudaLink& judge, CudaReference& reference,
                                                     CudaWorker& worker, CudaCase& state,
                                                     const CudaTimed& timed,
                                                     const CudaTimingPlan& plan,
                                                     double* max_error) {
  return Audit(judge, reference, worker, state, timed, plan, max_error).run();
}

}  // namespace kernelpro
