// SPDX-License-Identifier: Apache-2.0
#include "measure/cpu/timing.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/clock.h"
#include "base/statistics/contest.h"
#include "base/statistics/randomised.h"
#include "base/text.h"
#include "core/evaluation/load.h"
#include "core/task/key.h"
#include "machine/cpu.h"
#include "measure/cpu/orders.h"
#include "measure/cpu/perf_events.h"
#include "measure/cpu/turns.h"

namespace kernelpro {

namespace {

constexpr double kSizingNs = 1e6;      // of calls at once, to estimate how long one takes
constexpr double kWarmBelowNs = 20e6;  // longer calls are not warmed up before each turn
constexpr int kSizings = 3;            // calls to estimate how long one takes
// The least share of a turn that counts as calls, whatever its orders cost. Where calls are shorter
// than their orders, the difference of the two is mostly chance.
constexpr double kLeastShare = 0.5;
constexpr double kLeastUndisturbed = 0.05;  // of a turn's time, whatever waited in it
constexpr int kWarmSlot = 0;                // the slots after it are timed
constexpr double kBusyNote = 0.5;           // a verdict notes when more than this was disturbed

// One side of the contest: a process, replaced when it has seen all inputs.
struct Side {
  const Binary* binary = nullptr;
  std::unique_ptr<CpuSession> session;
  std::vector<std::size_t> unseen;  // sets that this process has not seen
  double call_ns = 0;
};

class TimedContest {
 public:
  TimedContest(const CpuCase& state, const SessionMaker& start, const Binary& candidate,
               const Binary* incumbent, const TimingPlan& plan)
      : state_(state), start_(start), plan_(plan), phase_("timing case " + state.c->name) {
    candidate_.binary = &candidate;
    incumbent_.binary = incumbent;
    probes_ = plan.probes;
    warm_ = fresh_secret() % state.sets.size();
    most_ = static_cast<int>(state.sets.size()) - 1;
  }

  Result<std::variant<Timed, Outcome>> run() {
    using Answer = std::variant<Timed, Outcome>;
    if (Step outcome = prepare(); !outcome || *outcome) return answer(std::move(outcome));
    const double start = real_clock().now_s();
    for (;;) {
      if (!probes_.empty() && fresh_secret() % 3 == 0) {
        if (Step outcome = probe(); !outcome || *outcome) return answer(std::move(outcome));
      }
      const Contest::Next next = contest_->next(real_clock().now_s() - start);
      if (next == Contest::Next::kDone) break;
      Step outcome =
          next == Contest::Next::kPair ? pair() : single(next == Contest::Next::kIncumbent);
      if (!outcome || *outcome) return answer(std::move(outcome));
      if (anew_) begin_contest();
    }
    while (!probes_.empty()) {
      if (Step outcome = probe(); !outcome || *outcome) return answer(std::move(outcome));
    }
    return Answer(result());
  }

 private:
  // nullopt: continue. An Outcome: the candidate's fault; an Error: the machine's.
  using Step = Result<std::optional<Outcome>>;

  static Result<std::variant<Timed, Outcome>> answer(Step step) {
    if (!step) return tl::unexpected<Error>(step.error());
    return std::variant<Timed, Outcome>(std::move(**step));
  }
  bool paired() const { return incumbent_.binary != nullptr; }

  // All sets but the warm-up set, in a secret order.
  std::vector<std::size_t> shuffled_sets() {
    std::vector<std::size_t> sets(state_.sets.size());
    std::iota(sets.begin(), sets.end(), std::size_t{0});
    std::erase(sets, warm_);
    for (std::size_t k = sets.size(); k-- > 1;) std::swap(sets[k], sets[fresh_secret() % (k + 1)]);
    return sets;
  }

  // Starts a new process in new memory, which sees only the warm-up set.
  Step begin(Side& side, std::vector<std::size_t> unseen) {
    side.session.reset();
    side.unseen = std::move(unseen);
    KP_ASSIGN(CpuSession::Started started, start_(*side.binary));
    if (Outcome* outcome = std::get_if<Outcome>(&started)) {
      return std::optional<Outcome>(std::move(*outcome));
    }
    side.session = std::move(std::get<std::unique_ptr<CpuSession>>(started));
    side.session->pause();
    const CpuBuffers& buffers = side.session->buffers();
    for (int slot = 0; slot < state_.slots; ++slot) {
      load_inputs(state_, buffers, slot, state_.sets[warm_]);
    }
    static_cast<void>(poison_outputs(state_, buffers, 0, state_.slots));
    if (around_ns_ == 0) watch_around(buffers);
    if (side.call_ns == 0) return size_up(side);
    return std::optional<Outcome>();
  }

  // Once: what our own work around a call takes, the comparison about as long as the rest.
  void watch_around(const CpuBuffers& buffers) {
    const double start = real_clock().now_s();
    static_cast<void>(reveal(state_, buffers, kWarmSlot, state_.sets[warm_]));
    around_ns_ = kAroundCallNs + 2e9 * (real_clock().now_s() - start);
  }

  // An incumbent's failure is not the candidate's fault.
  Step begin_incumbent(std::vector<std::size_t> unseen) {
    Step lost = begin(incumbent_, std::move(unseen));
    if (lost && *lost) drop_incumbent();
    return lost ? std::optional<Outcome>() : lost;
  }

  void drop_incumbent() {
    incumbent_.binary = nullptr;
    incumbent_.session.reset();
    if (contest_) contest_->drop_incumbent();
  }

  // Starts new processes for both, which will see the same sets.
  Step renew() {
    const std::vector<std::size_t> unseen = shuffled_sets();
    Step step = paired() ? begin_incumbent(unseen) : std::optional<Outcome>();
    return step ? begin(candidate_, unseen) : step;
  }

  // Starts all processes and sizes the turns.
  Step prepare() {
    KP_ASSIGN(CpuSession::Started empty, start_(Binary{}));
    KP_ASSIGN(orders_, Orders::begin(std::move(empty), plan_.timeout_s, phase_));
    if (Step outcome = renew(); !outcome || *outcome) return outcome;
    begin_contest();
    return std::optional<Outcome>();
  }

  int calls_for() const {
    return calls_per_turn(candidate_.call_ns, paired() ? incumbent_.call_ns : 0, around_ns_, most_);
  }

  // Turns tell how fast a side is, whatever it did when it was sized up.
  void watch_length(Side& side, double own_ns) {
    const double call_ns = own_ns / calls_;
    if (call_ns >= side.call_ns) return;
    const double seemed = std::exchange(side.call_ns, call_ns);
    anew_ = anew_ || much_too_short(calls_, calls_for());
    if (!anew_) side.call_ns = seemed;
  }

  // Forgets all turns so far.
  void begin_contest() {
    anew_ = false;
    dropped_ = disturbed_ = kept_ = bounded_ = sides_ = 0;
    cpu_ns_ = own_ns_ = 0;
    foreign_ = {};
    calls_ = calls_for();
    ContestSettings settings;
    const auto turn_s = [&](const Side& side) {
      return calls_ * (side.call_ns + around_ns_) * 1e-9;
    };
    settings.incumbent_s = paired() ? turn_s(incumbent_) : 0;
    settings.candidate_s = turn_s(candidate_);
    settings.max_pairs = plan_.max_pairs;
    settings.enough_pairs = plan_.enough_pairs;
    settings.budget_s = plan_.budget_s;
    settings.hard_budget_s = plan_.hard_budget_s;
    settings.min_effect = plan_.min_effect;
    settings.alpha = plan_.alpha;
    settings.stop_early = plan_.stop_early;
    settings.seed = fresh_secret();
    contest_.emplace(settings);
  }

  double own_of(const MeasuredTurn& taken) const {
    return std::max(own_ns(taken, orders_->cost()), kLeastShare * taken.wall_ns);
  }

  // Estimates how long a call takes: the shortest of a few, where that is cheap.
  std::optional<Outcome> size_up(Side& side) {
    int calls = 1;
    for (int step = 0; step < 4; ++step) {
      double wall = 0;
      for (int again = 0; again < kSizings; ++again) {
        side.session->scatter(fresh_secret() >> 8);
        side.session->begin_turn();
        const auto called =
            side.session->timed_call({kWarmSlot, 1, calls, 0}, plan_.timeout_s, phase_);
        if (const Outcome* outcome = std::get_if<Outcome>(&called)) return *outcome;
        MeasuredTurn taken;
        taken.wall_ns = std::get<Called>(called).wall_ns;
        const double own = own_of(taken);
        wall = again == 0 ? own : std::min(wall, own);
        if (wall > kWarmBelowNs) break;
      }
      side.call_ns = std::max(wall / calls, 1.0);
      if (wall > kSizingNs) break;
      calls = std::clamp(static_cast<int>(kSizingNs / side.call_ns), 2 * calls, 100000);
    }
    return std::nullopt;
  }

  std::optional<Outcome> warm_up(Side& side) {
    side.session->scatter(fresh_secret() >> 8);
    if (side.call_ns > kWarmBelowNs) return std::nullopt;
    side.session->begin_turn();
    const auto warmed = side.session->timed_call({kWarmSlot, 1, 1, 0}, plan_.timeout_s, phase_);
    if (const Outcome* outcome = std::get_if<Outcome>(&warmed)) return *outcome;
    side.session->settle();
    return judge_memory(state_, side.session->buffers());  // it could mend it in its turn
  }

  // The sets of the side's next turn.
  std::vector<const InputSet*> take(Side& side) {
    std::vector<const InputSet*> taken;
    for (int i = 0; i < calls_; ++i) {
      taken.push_back(&state_.sets[side.unseen.back()]);
      side.unseen.pop_back();
    }
    return taken;
  }

  // One turn on these sets, its results compared. Its own warm-up comes directly before it, so that
  // what the other side left in the caches does not matter. Each call has its own order, and its
  // inputs come into memory when the process has been stopped after the call before: nothing can be
  // computed ahead, and nothing be left for later.
  std::variant<MeasuredTurn, Outcome> turn(Side& side, const std::vector<const InputSet*>& shown,
                                           double* max_error, const ProbeSet* probe = nullptr,
                                           bool counts = true) {
    if (auto outcome = warm_up(side)) return *outcome;
    const CpuBuffers& buffers = side.session->buffers();
    MeasuredTurn taken;
    taken.calls = calls_;
    const std::size_t looked_at = fresh_secret() % shown.size();  // to see how precise it is
    side.session->begin_turn();
    for (std::size_t i = 0; i < shown.size(); ++i) {
      const int slot = timed_slot();
      const std::vector<Poison> poisons = reveal(state_, buffers, slot, *shown[i]);
      const bool probed = probe != nullptr && shown[i] == &probe->set;
      using Values = CpuSession::Values;
      const auto called = side.session->timed_call({slot, 1, 1, 0}, plan_.timeout_s, phase_,
                                                   probed ? Values::kProbe : Values::kGiven);
      if (const Outcome* outcome = std::get_if<Outcome>(&called)) return *outcome;
      const double wall_ns = std::get<Called>(called).wall_ns;
      taken.wall_ns += wall_ns;
      if (probed) values_.add_probe(probe->kind, wall_ns);
      if (!probed && &side == &candidate_) values_.add_given(wall_ns);
      if (auto outcome = look(buffers, slot, *shown[i], poisons, max_error,
                              probed ? probe : nullptr, i == looked_at)) {
        return *outcome;
      }
    }
    const TurnUse use = side.session->end_turn();
    taken.cpu_ns = use.cpu_ns;
    taken.others_cpu_ns = use.others_cpu_ns;
    taken.foreign = use.foreign;
    taken.waited_ns = use.waited_ns;
    if (counts) watch_length(side, own_of(taken));
    return taken;
  }

  int timed_slot() const {
    const auto slots = static_cast<std::uint64_t>(state_.slots - kWarmSlot - 1);
    return kWarmSlot + 1 + static_cast<int>(fresh_secret() % slots);
  }

  static bool disturbed(double foreign) { return foreign > kBusyShare; }

  // Whether the last measurement, of one turn or two, counts. Decided before its time is looked at.
  bool counts(const MeasuredTurn& turn, const MeasuredTurn* other = nullptr) {
    const bool disturbed =
        TimedContest::disturbed(turn.foreign) || (other && TimedContest::disturbed(other->foreign));
    if (disturbed && dropped_ < plan_.most_dropped) {
      ++dropped_;
      return false;
    }
    disturbed_ += disturbed ? 1 : 0;
    ++kept_;
    foreign_.add(turn);
    if (other) foreign_.add(*other);
    return true;
  }

  // The next probe, in a turn of the candidate's that does not count, which it cannot know. One
  // call, at random, gets its inputs: what is precise must be so when it is timed.
  Step probe() {
    const ProbeSet* probe = probes_.back();
    probes_.pop_back();
    if (candidate_.unseen.size() < static_cast<std::size_t>(calls_)) {
      if (Step step = begin(candidate_, shuffled_sets()); !step || *step) return step;
    }
    const bool lockstep = incumbent_.unseen == candidate_.unseen;
    std::vector<const InputSet*> shown = take(candidate_);
    if (lockstep) incumbent_.unseen = candidate_.unseen;
    shown[fresh_secret() % shown.size()] = &probe->set;
    auto taken = turn(candidate_, shown, &max_error_, probe, false);
    if (Outcome* outcome = std::get_if<Outcome>(&taken)) return std::optional(std::move(*outcome));
    if (plan_.compares_values && keeps_time(probe->kind, true) &&
        values_.wants_more(probe->kind, orders_->cost().wall_ns)) {
      probes_.push_back(probe);
    }
    return std::optional<Outcome>();
  }

  // One turn of the block, on its own sets.
  Step single(bool incumbent) {
    Side& side = incumbent ? incumbent_ : candidate_;
    if (side.unseen.size() < static_cast<std::size_t>(calls_)) {
      Step step = incumbent ? begin_incumbent(shuffled_sets()) : begin(side, shuffled_sets());
      if (!step || *step || !side.session) return step;
    }
    KP_TRY(orders_->more());
    double ignored = 0;
    auto result = turn(side, take(side), incumbent ? &ignored : &max_error_);
    if (auto* outcome = std::get_if<Outcome>(&result)) {
      if (!incumbent) return std::optional<Outcome>(std::move(*outcome));
      drop_incumbent();
      return std::optional<Outcome>();
    }
    const MeasuredTurn& taken = std::get<MeasuredTurn>(result);
    if (!anew_ && counts(taken)) contest_->add_turn(incumbent, keep(side, taken));
    return std::optional<Outcome>();
  }

  // One turn of each, in a secret order, on the same sets.
  Step pair() {
    const bool lockstep = !paired() || incumbent_.unseen == candidate_.unseen;
    if (!lockstep || candidate_.unseen.size() < static_cast<std::size_t>(calls_)) {
      if (Step outcome = renew(); !outcome || *outcome) return outcome;
    }
    KP_TRY(orders_->more());
    const bool incumbent_first = fresh_secret() % 2 == 0;
    const std::vector<const InputSet*> shown = take(candidate_);
    incumbent_.unseen = candidate_.unseen;
    std::optional<MeasuredTurn> theirs;
    if (incumbent_first) theirs = incumbent_turn(shown);
    auto mine = turn(candidate_, shown, &max_error_);
    if (auto* outcome = std::get_if<Outcome>(&mine)) return std::optional<Outcome>(*outcome);
    if (!incumbent_first) theirs = incumbent_turn(shown);
    const MeasuredTurn& taken = std::get<MeasuredTurn>(mine);
    if (!anew_ && counts(taken, theirs ? &*theirs : nullptr)) {
      const TurnTime candidate = keep(candidate_, taken);
      const double foreign = std::max(taken.foreign, theirs ? theirs->foreign : 0);
      contest_->add_pair(theirs ? keep(incumbent_, *theirs) : 0, candidate, disturbed(foreign));
    }
    return std::optional<Outcome>();
  }

  std::optional<MeasuredTurn> incumbent_turn(const std::vector<const InputSet*>& shown) {
    if (!paired()) return std::nullopt;
    double ignored = 0;
    auto taken = turn(incumbent_, shown, &ignored);
    if (const MeasuredTurn* fine = std::get_if<MeasuredTurn>(&taken)) return *fine;
    drop_incumbent();
    return std::nullopt;
  }

  // Microseconds of a call.
  TurnTime keep(const Side& side, const MeasuredTurn& taken) {
    const double own = own_of(taken);
    // Processor time of a short turn may not have been booked yet.
    const double late = taken.wall_ns - least_ns(taken, threads_);
    const double least = std::clamp(own - late, kLeastUndisturbed * own, own);
    bounded_ += own_ns(taken, orders_->cost()) < own;
    ++sides_;
    if (&side == &candidate_) {
      cpu_ns_ += std::max(0.0, taken.cpu_ns - taken.calls * orders_->cost().cpu_ns);
      own_ns_ += own;
    }
    return {own * 1e-3 / calls_, least * 1e-3 / calls_};
  }

  // Checks memory and results after a call. `probe`: if these were its inputs. `closely`: whether
  // to note how precise the results are.
  std::optional<Outcome> look(const CpuBuffers& buffers, int slot, const InputSet& set,
                              const std::vector<Poison>& poisons, double* max_error,
                              const ProbeSet* probe, bool closely) {
    if (auto outcome = judge_memory(state_, buffers)) return outcome;
    double ignored = 0;
    const bool probed = probe != nullptr;
    auto outcome =
        judge_outputs(state_, buffers, slot, set, poisons, probed ? &ignored : max_error);
    if (!outcome) {
      const DrawKind kind = probed ? probe->kind : DrawKind::kGiven;
      const bool mine = max_error == &max_error_;
      if (mine && (probed || closely)) {
        add_deviations(state_, buffers, slot, set, kind, &norms_);
      }
      return std::nullopt;
    }
    if (probed) {
      failures_.push_back(probe_failure(probe->kind, state_.c->name, *outcome, state_.tensors));
      return std::nullopt;
    }
    if (auto* wrong = std::get_if<WrongResult>(&*outcome)) {
      wrong->reason = "in a timed call: " + wrong->reason;
    }
    return outcome;
  }

  Timed result() {
    Timed timed;
    const std::vector<double>& times = contest_->candidate_times();
    const bool busy = disturbed_ > kBusyNote * kept_;
    Interval us = busy ? undisturbed_time(times) : median_interval(times);
    if (busy) us.low = std::ranges::min(contest_->least_candidate_times());
    timed.timing.case_name = state_.c->name;
    timed.timing.median_us = us.mid;
    timed.timing.low_us = us.low;
    timed.timing.high_us = us.high;
    timed.timing.samples = static_cast<int>(times.size());
    timed.timing.method = paired() ? "calls in turn with the incumbent" : "calls in turn";
    if (calls_ > 1) timed.timing.method += ", " + std::to_string(calls_) + " a turn";
    if (paired()) timed.ratio = contest_->ratio();
    timed.max_error = max_error_;
    timed.failures = failures_;
    timed.norms = norms_;
    if (plan_.compares_values) timed.slower = values_.slower(orders_->cost().wall_ns);
    // What calls as short as an order use of the processors cannot be told from the order's.
    if (us.mid * 1e3 > orders_->cost().wall_ns) {
      timed.observed["cpu.threads_busy"] = cpu_ns_ / own_ns_;
    }
    timed.observed["load.foreign_cpu"] = foreign_.mean();
    timed.observed["load.pairs_dropped"] = dropped_;
    timed.observed["load.pairs_disturbed"] = disturbed_;
    if (2 * bounded_ > sides_) {
      timed.note =
          "a call takes no longer than the order for it (" +
          human_us(orders_->cost().wall_ns * 1e-3) +
          "), so that times are bounds and the true ratio is farther from 1: a larger case "
          "shows more";
    }
    if (busy) {
      timed.timing.method += ", lower quartile of disturbed turns";
      if (!timed.note.empty()) timed.note += ". ";
      timed.note += busy_note(foreign_.mean(), disturbed_, kept_);
    }
    observe_counters(&timed);
    return timed;
  }

  // Runs a few more calls under hardware counters, where this machine has them. Not timed.
  void observe_counters(Timed* timed) {
    PerfEvents events(candidate_.session->pid());
    if (!events.available()) return;
    candidate_.session->begin_turn();
    for (int i = 0; i < calls_; ++i) {
      const auto called =
          candidate_.session->timed_call({timed_slot(), 1, 1, 0}, plan_.timeout_s, phase_);
      if (!std::holds_alternative<Called>(called)) return;
    }
    const PerfCounts counts = events.read();
    if (counts.cycles > 0) timed->observed["cpu.perf.ipc"] = counts.instructions / counts.cycles;
    if (counts.has_misses) timed->observed["cpu.perf.cache_misses"] = counts.cache_misses / calls_;
  }

  const CpuCase& state_;
  const SessionMaker& start_;
  const TimingPlan& plan_;
  std::string phase_;
  Side candidate_, incumbent_;
  std::optional<Orders> orders_;
  double around_ns_ = 0;  // of our work around a call, roughly
  std::size_t warm_ = 0;  // the set that all processes have seen
  int calls_ = 1;         // per turn, each on its own set and by its own order
  int threads_ = std::max(1, read_cpu_info().threads);
  std::optional<Contest> contest_;
  int dropped_ = 0, disturbed_ = 0, kept_ = 0;  // pairs
  int sides_ = 0, bounded_ = 0;     // turns; those whose time is a share of their wall time
  ForeignShare foreign_;            // of the turns that count
  double cpu_ns_ = 0, own_ns_ = 0;  // of the candidate's turns that were kept
  double max_error_ = 0;
  std::vector<const ProbeSet*> probes_;  // to come
  std::vector<ProbeFailure> failures_;
  std::vector<NormError> norms_;
  ValueTimes values_;  // of the candidate
  int most_ = 1;       // calls per turn
  bool anew_ = false;  // the contest begins anew, with turns of another length
};

}  // namespace

Result<std::variant<Timed, Outcome>> time_case(const CpuCase& state, const SessionMaker& start,
                                               const Binary& candidate, const Binary* incumbent,
                                               const TimingPlan& plan) {
  KP_ASSERT(state.slots >= 2 && state.sets.size() >= 2);
  return TimedContest(state, start, candidate, incumbent, plan).run();
}

}  // namespace kernelpro
