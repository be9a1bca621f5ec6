// SPDX-License-Identifier: Apache-2.0
#include "evaluate/cpu_timing.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/sequential.h"
#include "base/text.h"
#include "core/inputs.h"
#include "evaluate/perf_events.h"

namespace kernelpro {

namespace {

constexpr double kTurnNs = 2e6;         // shorter calls are timed several at once, on several sets
constexpr double kLongestTurnNs = 4e7;  // of the slower side
constexpr double kWarmBelowNs = 20e6;   // longer calls are not warmed up before each turn
// By how much the supervisor's time of a turn may pass what the worker claims: twice what an order
// without calls takes, and this.
constexpr double kForgedShare = 0.10;
constexpr double kForgedNs = 1e6;  // less is charged, and nobody is accused
// ... and what part of that its process must have computed for: a machine that is late, as a
// virtual one may be for milliseconds, is nobody's tale. (The time is charged in either case.)
constexpr double kForgedCpuShare = 0.5;
constexpr const char* kForgedRule = "forged-timing";
constexpr int kForgedContests = 3;  // in a row that tell the tale
constexpr unsigned kBetweenContestsUs = 200'000;
constexpr double kLongestEmptyNs = 1e5;  // an order without calls: what is slower is its own doing
constexpr int kWarmSlot = 0;             // the slots after it are timed

// One side of the contest: a process, and another when that has seen all inputs.
struct Side {
  const Binary* binary = nullptr;
  std::unique_ptr<CpuSession> session;
  int warmup = 1;
  double call_ns = 0;
  std::vector<double> us;  // per call, by turn
  // By turn, by the supervisor's clock: all of it; what of it the worker does not claim, less what
  // either waited for a processor; and an order without calls.
  std::vector<double> wall_ns, unclaimed_ns, empty_ns;
  // By turn: processor time of its process outside of what it claims.
  std::vector<double> unclaimed_cpu_ns;
  double cpu_ns = 0, claimed_ns = 0;
};

class Contest {
 public:
  Contest(const CpuCase& state, const SessionMaker& start, const Binary& candidate,
          const Binary* incumbent, const TimingPlan& plan)
      : state_(state), start_(start), plan_(plan), phase_("timing case " + state.c->name) {
    candidate_.binary = &candidate;
    incumbent_.binary = incumbent;
    random_ = kp::mix64(plan.seed + 0x7131);
  }

  Result<std::variant<Timed, Outcome>> run() {
    using Answer = std::variant<Timed, Outcome>;
    if (Step outcome = prepare(); !outcome || *outcome) return answer(std::move(outcome));
    const double start = real_clock().now_s();
    for (int pairs = 0; !enough(pairs, real_clock().now_s() - start); ++pairs) {
      if (Step outcome = play(); !outcome || *outcome) return answer(std::move(outcome));
    }
    if (auto outcome = forged()) return Answer(*outcome);
    return Answer(result());
  }

 private:
  // nullopt: go on. An Outcome: of the candidate; an Error: the machine's fault.
  using Step = Result<std::optional<Outcome>>;

  static Result<std::variant<Timed, Outcome>> answer(Step step) {
    if (!step) return tl::unexpected<Error>(step.error());
    return std::variant<Timed, Outcome>(std::move(**step));
  }
  bool paired() const { return incumbent_.binary != nullptr; }
  std::uint64_t draw() { return random_ = kp::mix64(random_ + 0x9e3779b97f4a7c15ull); }

  // New processes for both, which have seen nothing but the set that warms up.
  Step renew() {
    unseen_.resize(state_.sets.size());
    std::iota(unseen_.begin(), unseen_.end(), std::size_t{0});
    for (std::size_t k = unseen_.size(); k-- > 1;) std::swap(unseen_[k], unseen_[draw() % (k + 1)]);
    const std::size_t warm = unseen_.back();
    unseen_.pop_back();
    clear_slots(state_, state_.sets[warm], draw());
    if (paired()) {
      Step lost = begin(incumbent_);
      if (!lost) return lost;
      if (*lost) drop_incumbent();
    }
    return begin(candidate_);
  }

  Step begin(Side& side) {
    side.session.reset();
    Result<CpuSession::Started> started = start_(*side.binary);
    if (!started) return tl::unexpected<Error>(started.error());
    if (Outcome* outcome = std::get_if<Outcome>(&*started)) {
      return std::optional<Outcome>(std::move(*outcome));
    }
    side.session = std::move(std::get<std::unique_ptr<CpuSession>>(*started));
    if (side.call_ns == 0) {
      if (auto outcome = size_up(side)) return outcome;
    }
    side.session->pause();
    return std::optional<Outcome>();
  }

  void drop_incumbent() {
    incumbent_.binary = nullptr;
    incumbent_.session.reset();
  }

  // Starts both and sizes the turns.
  Step prepare() {
    if (Step outcome = renew(); !outcome || *outcome) return outcome;
    double fastest = candidate_.call_ns, slowest = candidate_.call_ns;
    if (paired()) {
      fastest = std::min(fastest, incumbent_.call_ns);
      slowest = std::max(slowest, incumbent_.call_ns);
    }
    const double most = static_cast<double>(
        std::min<std::size_t>(static_cast<std::size_t>(state_.slots), state_.sets.size()) - 1);
    calls_ = static_cast<int>(
        std::clamp(std::min(std::ceil(kTurnNs / fastest), kLongestTurnNs / slowest), 1.0, most));
    test_.emplace(looks(fastest + slowest));
    first_look_ = test_->until_look();
    return std::optional<Outcome>();
  }

  // Pairs that take long get one look, as early as anything can be said.
  SequentialSettings looks(double pair_ns) const {
    SequentialSettings settings;
    settings.alpha = plan_.alpha;
    settings.min_effect = plan_.min_effect;
    settings.max_pairs = plan_.max_pairs;
    const int fewest = 1 + static_cast<int>(std::ceil(std::log2(1 / plan_.alpha)));
    if (settings.first_look * 2 * pair_ns * 1e-9 > plan_.hard_budget_s) {
      settings.max_pairs = std::min(plan_.max_pairs, fewest);
    }
    return settings;
  }

  // How long a call takes.
  std::optional<Outcome> size_up(Side& side) {
    int calls = 1;
    for (int step = 0; step < 4; ++step) {
      const auto called = side.session->call({kWarmSlot, 1, calls, 0}, plan_.timeout_s, phase_);
      if (const Outcome* outcome = std::get_if<Outcome>(&called)) return *outcome;
      const double claimed = static_cast<double>(std::get<Called>(called).done.elapsed_ns);
      side.call_ns = std::max(claimed / calls, 1.0);
      if (claimed > kTurnNs / 4) break;
      calls = std::clamp(static_cast<int>(kTurnNs / 4 / side.call_ns), 2 * calls, 100000);
    }
    side.warmup = side.call_ns < kWarmBelowNs ? 1 : 0;
    return std::nullopt;
  }

  std::optional<Outcome> warm_up(Side& side) {
    const double start = static_cast<double>(real_clock().now_ns());
    side.session->go_on();
    const auto empty = side.session->call({kWarmSlot, 0, 0, 0}, plan_.timeout_s, phase_);
    if (const Outcome* outcome = std::get_if<Outcome>(&empty)) return *outcome;
    side.empty_ns.push_back(static_cast<double>(real_clock().now_ns()) - start);
    if (side.warmup > 0) {
      const auto warmed =
          side.session->call({kWarmSlot, 1, side.warmup, 0}, plan_.timeout_s, phase_);
      if (const Outcome* outcome = std::get_if<Outcome>(&warmed)) return *outcome;
    }
    side.session->pause();
    return std::nullopt;
  }

  std::optional<Outcome> turn(Side& side) {
    const double limit = plan_.timeout_s + 10 * calls_ * side.call_ns * 1e-9;
    const double waited = side.session->kept_waiting_ns();
    const double computed = side.session->cpu_ns();
    const double start = static_cast<double>(real_clock().now_ns());
    side.session->go_on();
    const auto called = side.session->call({kWarmSlot + 1, calls_, 1, 0}, limit, phase_);
    if (const Outcome* outcome = std::get_if<Outcome>(&called)) return *outcome;
    // From where the process may run: what it does before it is asked counts too.
    const double wall = static_cast<double>(real_clock().now_ns()) - start;
    side.session->pause();
    const Called& c = std::get<Called>(called);
    const double claimed = static_cast<double>(c.done.elapsed_ns);
    const double claimed_cpu =
        std::min(static_cast<double>(c.done.cpu_ns), claimed * std::thread::hardware_concurrency());
    side.unclaimed_cpu_ns.push_back(side.session->cpu_ns() - computed - claimed_cpu);
    const double unclaimed =
        std::max(0.0, wall - claimed - (side.session->kept_waiting_ns() - waited));
    // What an order takes by itself is free, to a limit; the rest is charged.
    const double usual = std::min(median(side.empty_ns), kLongestEmptyNs);
    side.us.push_back((claimed + std::max(0.0, unclaimed - usual)) * 1e-3 / calls_);
    side.wall_ns.push_back(wall);
    side.unclaimed_ns.push_back(unclaimed);
    side.cpu_ns += static_cast<double>(c.done.cpu_ns);
    side.claimed_ns += claimed;
    return std::nullopt;
  }

  // One turn of each, in an order that nobody knows, on the same sets. Whoever comes second finds
  // the same in the caches: both are warmed up in the order of their turns, and looked at after
  // them.
  Step play() {
    if (unseen_.size() < static_cast<std::size_t>(calls_)) {
      if (Step outcome = renew(); !outcome || *outcome) return outcome;
    }
    const bool incumbent_first = draw() % 2 == 0;
    if (incumbent_first && paired() && warm_up(incumbent_)) drop_incumbent();
    if (auto outcome = warm_up(candidate_)) return outcome;
    if (!incumbent_first && paired() && warm_up(incumbent_)) drop_incumbent();
    std::vector<std::size_t> shown;
    for (int i = 0; i < calls_; ++i) {
      shown.push_back(unseen_.back());
      unseen_.pop_back();
      load_inputs(state_, kWarmSlot + 1 + i, state_.sets[shown.back()]);
    }
    if (incumbent_first) incumbent_turn(shown);
    if (auto outcome = candidate_turn(shown)) return outcome;
    if (!incumbent_first) incumbent_turn(shown);
    if (paired()) test_->add(incumbent_.us.back() / candidate_.us.back());
    return std::optional<Outcome>();
  }

  std::optional<Outcome> candidate_turn(const std::vector<std::size_t>& shown) {
    std::vector<Poison> poisons;
    poison_outputs(state_, kWarmSlot + 1, calls_, draw(), &poisons);
    if (auto outcome = turn(candidate_)) return outcome;
    return look(shown, poisons, &max_error_);
  }

  // Its trouble is not the candidate's.
  void incumbent_turn(const std::vector<std::size_t>& shown) {
    if (!paired()) return;
    std::vector<Poison> poisons;
    poison_outputs(state_, kWarmSlot + 1, calls_, draw(), &poisons);
    double ignored = 0;
    if (turn(incumbent_) || look(shown, poisons, &ignored)) drop_incumbent();
  }

  // What a turn left behind.
  std::optional<Outcome> look(const std::vector<std::size_t>& shown,
                              const std::vector<Poison>& poisons, double* max_error) {
    if (auto outcome = judge_memory(state_)) return outcome;
    for (int i = 0; i < calls_; ++i) {
      auto outcome =
          judge_outputs(state_, kWarmSlot + 1 + i, state_.sets[shown[static_cast<std::size_t>(i)]],
                        poisons, max_error);
      if (!outcome) continue;
      if (auto* wrong = std::get_if<WrongResult>(&*outcome)) {
        wrong->reason = "in a timed call: " + wrong->reason;
      }
      return outcome;
    }
    return std::nullopt;
  }

  bool enough(int pairs, double spent) const {
    if (pairs == 0) return false;
    if (pairs >= plan_.max_pairs) return true;
    if (spent > plan_.hard_budget_s && pairs >= 3) return true;
    const bool sequential = paired() && plan_.stop_early;
    if (sequential && test_->done()) return true;
    const int fewest = std::max(plan_.enough_pairs, sequential ? first_look_ : 0);
    return spent > plan_.budget_s && pairs >= fewest;
  }

  Interval ratio() const {
    if (!plan_.stop_early) return paired_ratio(incumbent_.us, candidate_.us);
    Interval interval = test_->interval();
    if (test_->pairs() >= first_look_) return interval;
    // Too few pairs to say anything with the confidence that was asked for.
    return {std::min(interval.low, 1.0), interval.mid, std::max(interval.high, 1.0)};
  }

  // A worker whose clock runs behind ours in half of the turns, and so in the median, tells a tale.
  std::optional<Outcome> forged() const {
    const double wall = median(candidate_.wall_ns), unclaimed = median(candidate_.unclaimed_ns);
    if (unclaimed <= 2 * std::min(median(candidate_.empty_ns), kLongestEmptyNs) +
                         kForgedShare * wall + kForgedNs ||
        median(candidate_.unclaimed_cpu_ns) < kForgedCpuShare * unclaimed) {
      return std::nullopt;
    }
    return Rejected{kForgedRule, "the worker claims " + number(100 * (1 - unclaimed / wall), 3) +
                                     " % of the time that its calls took by the supervisor's "
                                     "clock"};
  }

  Timed result() {
    Timed timed;
    const Interval us = median_interval(candidate_.us);
    timed.timing.case_name = state_.c->name;
    timed.timing.median_us = us.mid;
    timed.timing.low_us = us.low;
    timed.timing.high_us = us.high;
    timed.timing.samples = static_cast<int>(candidate_.us.size());
    timed.timing.method = paired() ? "calls in turn with the incumbent" : "calls in turn";
    if (calls_ > 1) timed.timing.method += ", " + std::to_string(calls_) + " at once";
    if (paired()) timed.ratio = ratio();
    timed.max_error = max_error_;
    timed.observed["cpu.threads_busy"] = candidate_.cpu_ns / candidate_.claimed_ns;
    observe_counters(&timed);
    return timed;
  }

  // One more turn under hardware counters, where this machine has them. Not timed.
  void observe_counters(Timed* timed) {
    candidate_.session->go_on();
    PerfEvents events(candidate_.session->pid());
    if (!events.available()) return;
    const auto called =
        candidate_.session->call({kWarmSlot + 1, calls_, 1, 0}, plan_.timeout_s, phase_);
    if (!std::holds_alternative<Called>(called)) return;
    const PerfCounts counts = events.read();
    if (counts.cycles > 0) timed->observed["cpu.perf.ipc"] = counts.instructions / counts.cycles;
    if (counts.has_misses) timed->observed["cpu.perf.cache_misses"] = counts.cache_misses / calls_;
  }

  const CpuCase& state_;
  const SessionMaker& start_;
  const TimingPlan& plan_;
  std::string phase_;
  Side candidate_, incumbent_;
  std::vector<std::size_t> unseen_;  // sets that these processes have not seen
  int calls_ = 1;                    // of a turn, each on a set of its own
  std::optional<SequentialRatio> test_;
  int first_look_ = 0;
  double max_error_ = 0;
  std::uint64_t random_ = 0;
};

}  // namespace

Result<std::variant<Timed, Outcome>> time_case(const CpuCase& state, const SessionMaker& start,
                                               const Binary& candidate, const Binary* incumbent,
                                               const TimingPlan& plan) {
  KP_ASSERT(state.slots >= 2 && state.sets.size() >= 2);
  for (int contest = 1;; ++contest) {
    auto timed = Contest(state, start, candidate, incumbent, plan).run();
    const Outcome* outcome = timed ? std::get_if<Outcome>(&*timed) : nullptr;
    const Rejected* rejected = outcome != nullptr ? std::get_if<Rejected>(outcome) : nullptr;
    const bool forged = rejected != nullptr && rejected->rule == kForgedRule;
    if (!forged || contest == kForgedContests) return timed;
    ::usleep(kBetweenContestsUs);
  }
}

}  // namespace kernelpro
