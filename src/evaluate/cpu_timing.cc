// SPDX-License-Identifier: Apache-2.0
#include "evaluate/cpu_timing.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/text.h"
#include "core/inputs.h"
#include "evaluate/perf_events.h"

namespace kernelpro {

namespace {

constexpr double kTurnNs = 2e6;                 // shorter calls are timed several at once
constexpr double kWarmBelowNs = 20e6;           // longer calls are not warmed up before each turn
constexpr std::int64_t kSmallOutput = 1 << 20;  // bytes; compared in half of all turns

// One process's part in the contest.
struct Side {
  CpuSession* session = nullptr;
  int calls = 1;
  int warmup = 1;
  double call_ns = 0;
  std::vector<double> us;         // per call, by turn
  std::vector<double> unclaimed;  // share of the supervisor's time that the worker does not claim
  double cpu_ns = 0, claimed_ns = 0;
};

class Contest {
 public:
  Contest(const CpuCase& state, CpuSession& candidate, CpuSession* incumbent,
          const TimingPlan& plan)
      : state_(state), plan_(plan), phase_("timing case " + state.c->name) {
    candidate_.session = &candidate;
    incumbent_.session = incumbent;
    random_ = kp::mix64(plan.seed + 0x7131);
  }

  std::variant<Timed, Outcome> run() {
    if (auto outcome = prepare()) return *outcome;
    const double start = real_clock().now_s();
    for (int pair = 0;; ++pair) {
      const double spent = real_clock().now_s() - start;
      const bool last = pair > 0 && enough(pair, spent);
      if (auto outcome = play(pair, last)) return *outcome;
      if (last) break;
    }
    if (auto outcome = forged()) return *outcome;
    return result();
  }

 private:
  bool paired() const { return incumbent_.session != nullptr; }
  std::uint64_t draw() { return random_ = kp::mix64(random_ + 0x9e3779b97f4a7c15ull); }

  // Estimates the length of a call and sizes the turns.
  std::optional<Outcome> prepare() {
    load_rotated(state_, state_.sets[kCheckedSets], draw());
    if (paired()) {
      incumbent_.session->pause();
      candidate_.session->pause();
      if (size_turns(incumbent_)) incumbent_.session = nullptr;
    }
    return size_turns(candidate_);
  }

  std::optional<Outcome> size_turns(Side& side) {
    side.session->go_on();
    double per_call = 0;
    int calls = 1;
    for (int step = 0; step < 4; ++step) {
      const auto called = side.session->call({0, calls}, plan_.timeout_s, phase_);
      if (const Outcome* outcome = std::get_if<Outcome>(&called)) return *outcome;
      const double claimed = static_cast<double>(std::get<Called>(called).done.elapsed_ns);
      per_call = claimed / calls;
      if (claimed > kTurnNs / 4 || step == 3) break;
      calls =
          std::clamp(static_cast<int>(kTurnNs / 4 / std::max(per_call, 1.0)), 2 * calls, 100000);
    }
    side.call_ns = per_call;
    side.calls =
        std::clamp(static_cast<int>(std::ceil(kTurnNs / std::max(per_call, 1.0))), 1, 200000);
    side.warmup = per_call < kWarmBelowNs ? 1 : 0;
    if (paired()) side.session->pause();
    return std::nullopt;
  }

  std::optional<Outcome> turn(Side& side) {
    if (paired()) side.session->go_on();
    const double limit = plan_.timeout_s + 10 * side.calls * side.call_ns * 1e-9;
    if (side.warmup > 0) {
      const auto warmed = side.session->call({0, side.warmup}, plan_.timeout_s, phase_);
      if (const Outcome* outcome = std::get_if<Outcome>(&warmed)) return *outcome;
    }
    const auto called = side.session->call({0, side.calls}, limit, phase_);
    if (const Outcome* outcome = std::get_if<Outcome>(&called)) return *outcome;
    if (paired()) side.session->pause();
    const Called& c = std::get<Called>(called);
    const double claimed = static_cast<double>(c.done.elapsed_ns);
    side.us.push_back(claimed * 1e-3 / side.calls);
    side.unclaimed.push_back((c.wall_ns - claimed - kRoundTripNs) / c.wall_ns);
    side.cpu_ns += static_cast<double>(c.done.cpu_ns);
    side.claimed_ns += claimed;
    return std::nullopt;
  }

  // One turn of each, in alternating order, on inputs that neither has seen.
  std::optional<Outcome> play(int pair, bool last) {
    const bool small = output_bytes(state_) <= kSmallOutput;
    const bool compare = pair == 0 || last || draw() % (small ? 2 : 8) == 0;
    // The first comparison is on the set that was never shown before.
    const InputSet& set = state_.sets[pair == 0 ? kCheckedSets : draw() % kInputSets];
    if (compare) {
      load_inputs(state_, set);
    } else {
      load_rotated(state_, set, draw());
    }
    const bool incumbent_first = draw() % 2 == 0;
    if (paired() && incumbent_first && !incumbent_turn()) return std::nullopt;
    if (auto outcome = candidate_turn(compare, set)) return outcome;
    if (paired() && !incumbent_first && !incumbent_turn()) return std::nullopt;
    return std::nullopt;
  }

  std::optional<Outcome> candidate_turn(bool compare, const InputSet& set) {
    std::vector<Poison> poisons;
    if (compare) poison_outputs(state_, draw(), &poisons);
    if (auto outcome = turn(candidate_)) return outcome;
    if (!compare) return std::nullopt;
    std::optional<Outcome> outcome = judge_outputs(state_, set, poisons, &max_error_);
    if (outcome) {
      if (auto* wrong = std::get_if<WrongResult>(&*outcome)) {
        wrong->reason = "in a timed call: " + wrong->reason;
      }
    }
    return outcome;
  }

  // False when the incumbent is out.
  bool incumbent_turn() {
    if (!turn(incumbent_)) return true;
    incumbent_.session = nullptr;
    candidate_.session->go_on();
    return false;
  }

  Interval ratio() const {
    const std::size_t n = std::min(candidate_.us.size(), incumbent_.us.size());
    return paired_ratio({incumbent_.us.begin(), incumbent_.us.begin() + static_cast<long>(n)},
                        {candidate_.us.begin(), candidate_.us.begin() + static_cast<long>(n)});
  }

  // Probability that fair coins show at least `wins` of `n`.
  static double by_chance(int wins, int n) {
    double term = std::exp2(-n), sum = 0;
    for (int k = 0; k <= n; ++k) {
      if (k >= wins) sum += term;
      term *= static_cast<double>(n - k) / (k + 1);
    }
    return sum;
  }

  // Looked at every fourth pair; a sign test at 0.5 % a look keeps the whole below 5 %.
  bool decided(int pairs) const {
    if (!plan_.stop_early || !paired() || pairs < 12 || pairs % 4 != 0) return false;
    int faster = 0, slower = 0;
    for (std::size_t i = 0; i < incumbent_.us.size() && i < candidate_.us.size(); ++i) {
      const double r = incumbent_.us[i] / candidate_.us[i];
      faster += r > 1 + plan_.min_effect ? 1 : 0;
      slower += r < 1 - plan_.min_effect ? 1 : 0;
    }
    if (by_chance(std::max(faster, slower), pairs) < 0.005) return true;
    const Interval r = ratio();
    return r.low > 1 - plan_.min_effect && r.high < 1 + plan_.min_effect;
  }

  bool enough(int pairs, double spent) const {
    if (pairs + 1 >= plan_.max_pairs) return true;
    if (spent > plan_.hard_budget_s && pairs >= 2) return true;
    if (spent > plan_.budget_s && pairs + 1 >= plan_.enough_pairs) return true;
    return decided(pairs);
  }

  // A worker whose clock runs behind ours in nearly every turn tells a tale.
  std::optional<Outcome> forged() const {
    const double share = quantile(candidate_.unclaimed, 0.25);
    if (share <= kForgedShare) return std::nullopt;
    return Rejected{"forged-timing", "the worker claims " + number(100 * (1 - share), 3) +
                                         " % of the time that its calls took by the supervisor's "
                                         "clock, in nearly every turn"};
  }

  std::variant<Timed, Outcome> result() {
    Timed timed;
    const Interval us = median_interval(candidate_.us);
    timed.timing.case_name = state_.c->name;
    timed.timing.median_us = us.mid;
    timed.timing.low_us = us.low;
    timed.timing.high_us = us.high;
    timed.timing.samples = static_cast<int>(candidate_.us.size());
    timed.timing.method = paired() ? "calls in turn with the incumbent" : "calls in turn";
    if (candidate_.calls > 1)
      timed.timing.method += ", " + std::to_string(candidate_.calls) + " at once";
    if (paired()) timed.ratio = ratio();
    timed.max_error = max_error_;
    timed.observed["cpu.threads_busy"] = candidate_.cpu_ns / candidate_.claimed_ns;
    observe_counters(&timed);
    return timed;
  }

  // One more turn under hardware counters, where this machine has them. Not timed.
  void observe_counters(Timed* timed) {
    if (paired()) candidate_.session->go_on();
    PerfEvents events(candidate_.session->pid());
    if (!events.available()) return;
    const auto called = candidate_.session->call({0, candidate_.calls}, plan_.timeout_s, phase_);
    if (!std::holds_alternative<Called>(called)) return;
    const PerfCounts counts = events.read();
    if (counts.cycles > 0) timed->observed["cpu.perf.ipc"] = counts.instructions / counts.cycles;
    if (counts.has_misses) {
      timed->observed["cpu.perf.cache_misses"] = counts.cache_misses / candidate_.calls;
    }
  }

  static constexpr double kRoundTripNs = 4e5;   // generous: two messages and two wake-ups
  static constexpr double kForgedShare = 0.10;  // of a turn

  const CpuCase& state_;
  const TimingPlan& plan_;
  std::string phase_;
  Side candidate_, incumbent_;
  double max_error_ = 0;
  std::uint64_t random_ = 0;
};

}  // namespace

std::variant<Timed, Outcome> time_case(const CpuCase& state, CpuSession& candidate,
                                       CpuSession* incumbent, const TimingPlan& plan) {
  return Contest(state, candidate, incumbent, plan).run();
}

}  // namespace kernelpro
