// SPDX-License-Identifier: Apache-2.0
#include "run/bench.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "base/cancel.h"
#include "base/clock.h"
#include "base/text.h"
#include "core/evidence/metrics.h"
#include "core/evidence/rates.h"
#include "diagnose/diagnose.h"
#include "run/standing.h"
#include "run/store/tool_record.h"

namespace kernelpro {

namespace {

constexpr std::size_t kFinalists = 3;  // at most, once one of them holds
constexpr EnergyPlan kConfirmEnergy{5, 1.0};
// What profiling parents may take: a share of the run so far, and seconds on top.
constexpr double kProfilingShare = 0.1;
constexpr double kProfilingSeconds = 10;
constexpr double kNearBest = 0.9;

bool has_counters(const Evidence& evidence) {
  const auto counts = [](const Evidence& facts) {
    return std::any_of(facts.items().begin(), facts.items().end(), [](const auto& item) {
      const Metric* metric = find_metric(item.first);
      return metric != nullptr && metric->family == Family::kCounters;
    });
  };
  return counts(evidence) ||
         std::any_of(evidence.kernels.begin(), evidence.kernels.end(),
                     [&](const KernelEvidence& kernel) { return counts(kernel.facts); });
}

// Whether `a` was confirmed to be better than `b`, which the search put before it. Beside a start
// whose times scatter, a larger ratio is too little for that: all that its interval holds must be
// above b's ratio. Without an interval they are the start itself, at 1.
bool confirmed_better(const Correct& a, const Correct& b, const Borne& borne) {
  const double low = a.versus ? a.versus->low : 1, other = b.versus ? b.versus->ratio : 1;
  return beats(a, -low, b, -other, borne);
}

}  // namespace

Bench::Bench(BenchParts parts)
    : parts_(std::move(parts)),
      machine_(*parts_.machine),
      ledger_(parts_.settings->objective),
      record_(parts_.record),
      frame_(*parts_.task, parts_.settings->target, *parts_.machine),
      fact_file_(parts_.settings->facts) {}

Result<std::vector<StoredCandidate>> Bench::restore() {
  KP_ASSIGN(auto steps, parts_.store->tool_steps());
  for (const ToolStep& step : steps) record_.add(step.tool, step.likely, step.measured);
  KP_TRY(parts_.store->briefs([this](StoredBrief brief) {
    const Known& known = brief.known;
    if (!known.evaluation.code.empty()) by_code_.emplace(known.evaluation.code, known.id);
    ledger_.record(std::move(brief));
  }));
  facts_not_told_ = static_cast<std::size_t>(ledger_.evaluations());
  KP_ASSIGN(const auto header, parts_.store->header());
  machine_.ceilings = header.machine.ceilings;
  if (parts_.station != nullptr) {
    const Ceilings& here = parts_.station->machine().ceilings;
    if (better_than(here, machine_.ceilings)) {
      KP_TRY(adopt(best_known(machine_.ceilings, here)));
    }
  }
  return parts_.store->waiting();
}

Result<KnownPtr> Bench::whole(std::int64_t id) {
  KnownPtr known = ledger_.find(id);
  if (known == nullptr || !known->brief()) return known;
  KP_ASSIGN(auto stored, parts_.store->candidate(id, false));
  ledger_.complete(std::move(stored.known));
  return ledger_.find(id);
}

Result<History> Bench::whole_history() {
  const History all = ledger_.history();  // a copy: `whole` changes it
  for (const KnownPtr& known : all) KP_TRY(whole(known->id));
  return ledger_.history();
}

Result<std::optional<Evidence>> Bench::evidence(std::int64_t id) {
  if (!raw() || ledger_.find(id) == nullptr) return std::optional<Evidence>();
  const auto it = evidence_.find(id);
  if (it != evidence_.end()) return std::optional<Evidence>(it->second);
  KP_ASSIGN(auto stored, parts_.store->candidate(id, true));
  return std::optional<Evidence>(evidence_[id] = std::move(stored.evidence));
}

Result<std::vector<Fact>> Bench::facts() {
  if (facts_not_told_ == 0) return facts_;
  std::vector<Fact> all;
  KP_ASSIGN(const History history, whole_history());
  for (std::size_t i = 0; i < facts_not_told_; ++i) {
    if (auto fact = fact_of(frame_, ledger_, *history[i])) all.push_back(std::move(*fact));
  }
  facts_not_told_ = 0;
  facts_.insert(facts_.begin(), std::make_move_iterator(all.begin()),
                std::make_move_iterator(all.end()));
  return facts_;
}

// The least comparable time of a candidate other than PyTorch's; 0: there is none.
double Bench::fastest_source_us() const {
  double least = 0;
  for (const KnownPtr& known : ledger_.history()) {
    const double us = ledger_.comparable_us(known->id);
    if (!language_row(known->candidate.language).compiled || us <= 0) continue;
    if (least == 0 || us < least) least = us;
  }
  return least;
}

// Whether it may be screened: a setting of a source of which another was judged in full. Not where
// energy counts, of which a slower one may need less, nor where all are to be profiled, nor where
// the best keeps the contract in part: then nothing that is not probed may pass it.
bool Bench::is_variant(const Candidate& candidate, const Known& best) const {
  const RunSettings& settings = *parts_.settings;
  if (settings.target != TargetKind::kCuda || settings.profile_each) return false;
  if (settings.objective.wants_energy() || settings.redraw) return false;
  if (!language_row(candidate.language).compiled ||
      !language_row(best.candidate.language).compiled) {
    return false;
  }
  const auto cases = cases_for(*parts_.task, settings.target);
  if (std::ranges::count_if(cases, [](const Case* each) { return each->timed; }) != 1) return false;
  if (is_partial(*best.evaluation.correct(), ledger_.borne())) return false;
  const SameSource same(candidate);
  return std::ranges::any_of(ledger_.history(), [&](const KnownPtr& each) {
    return each->evaluation.correct() != nullptr && same(*each);
  });
}

Result<Bench::Begun> Bench::begin(const Known& known, const Built& built) {
  if (built.error) {
    Measured measured;
    measured.evaluation.emplace();
    measured.evaluation->outcome = *built.error;
    measured.evaluation->compile_ms = built.compile_ms;
    return Begun(std::move(measured));
  }
  const KnownPtr best = ledger_.best();
  const bool variant = best != nullptr && is_variant(known.candidate, *best);
  if (!built.code.empty()) {
    for (const auto& [id, code] : begun_) {
      if (code == built.code) return Begun(Busy{});
    }
    if (const auto twin = by_code_.find(built.code); twin != by_code_.end()) {
      KP_ASSIGN(Measured measured, measured_before(twin->second, built));
      // What may not be screened itself is judged, though its code was seen in one that was.
      if (variant || !is_screened(*measured.evaluation)) return Begun(std::move(measured));
    }
  }
  begun_[known.id] = built.code;
  Order order;
  order.candidate = known.candidate;
  order.energy.emplace();
  order.variant = variant;
  if (best != nullptr) {
    KP_ASSIGN(const KnownPtr incumbent, whole(best->id));
    order.incumbent = incumbent->candidate;
    // Only kernels that others will be derived from are worth counters: the best one and, where
    // PyTorch leads, the best one with a source to change.
    const double source_us = fastest_source_us();
    if (source_us > 0) order.counters_above = ledger_.comparable_us(best->id) / source_us;
  }
  // The search may build on any that is about as fast as the best.
  if (parts_.asked_elsewhere && order.counters_above) {
    order.counters_above = std::min(*order.counters_above, kNearBest);
  }
  if (parts_.settings->profile_each) order.counters_above = 0;
  if (variant) order.counters_above.reset();  // once it leads, by profile_leaders
  return Begun(std::move(order));
}

void Bench::forget(std::int64_t id) { begun_.erase(id); }

// The result of an earlier candidate with the same machine code, launches included.
Result<Measured> Bench::measured_before(std::int64_t twin, const Built& built) {
  KP_ASSIGN(StoredCandidate stored, parts_.store->candidate(twin, true));
  Measured measured;
  measured.evidence = std::move(stored.evidence);
  measured.evidence.forget(Family::kCeilings);  // as a station answers
  Evaluation& evaluation = measured.evaluation.emplace(std::move(stored.known.evaluation));
  evaluation.compile_ms = built.compile_ms;
  evaluation.run_ms = 0;
  if (auto* correct = std::get_if<Correct>(&evaluation.outcome)) {
    correct->notes.push_back("the machine code of candidate " + std::to_string(twin) +
                             " again: not measured a second time");
  }
  return measured;
}

// Reads what a candidate's writer may have begun from (made_from, fact_of).
Result<void> Bench::whole_around(const Known& known) {
  const Origin& origin = known.candidate.origin;
  for (const std::int64_t id : {origin.parent, origin.repairs}) KP_TRY(whole(id));
  const Correct* correct = known.evaluation.correct();
  if (correct == nullptr || !correct->versus) return {};
  const KnownPtr rival = ledger_.champion(correct->versus->incumbent);
  if (rival != nullptr) KP_TRY(whole(rival->id));
  return {};
}

// The step for the finding that a candidate answers, if any; uses comparable times.
Result<std::optional<ToolStep>> Bench::step_of(const Known& known) {
  KP_TRY(whole_around(known));
  const KnownPtr parent = made_from(ledger_, known);
  if (parent == nullptr) return std::optional<ToolStep>();
  return tool_step(*parent, known, ledger_.comparable_us(parent->id),
                   ledger_.comparable_us(known.evaluation));
}

// Returns why the user's record could not be updated, the first time; else "".
std::string Bench::learn(const ToolStep& step) {
  record_.add(step.tool, step.likely, step.measured);
  if (parts_.settings->record.empty()) return "";
  const auto added = add_to_record(parts_.settings->record, step);
  if (added || record_fails_) return "";
  record_fails_ = true;
  return "the record of tools is left as it is: " + added.error().message;
}

// What a new evaluation teaches, if anything.
Result<std::optional<Fact>> Bench::fact(const Known& known) {
  KP_TRY(whole_around(known));
  return fact_of(frame_, ledger_, known);
}

// Stores what an evaluation taught, for this run's writers and other runs'. Returns why the user's
// memory could not be updated (the first time) or what happened to it; else "".
std::string Bench::remember(Fact fact) {
  facts_.push_back(fact);
  if (!leaves_facts(*parts_.settings) || facts_fail_) return "";
  if (run_id_.empty()) run_id_ = parts_.store->run_id();
  const auto added = fact_file_.add(run_id_, {std::move(fact)});
  if (added) return fact_file_.take_note();
  facts_fail_ = true;
  return "the memory gets no more of this run: " + added.error().message;
}

Result<std::optional<Bench::Verdict>> Bench::evaluate(Known known) {
  phase("compiling");
  const auto built = outside([&] { return parts_.station->build(known.candidate); });
  // A compiler killed from outside says nothing about the candidate.
  if (cancel_requested()) return std::optional<Verdict>();
  if (!built) return tl::unexpected<Error>(built.error());
  KP_ASSIGN(Begun begun, begin(known, *built));
  if (auto* measured = std::get_if<Measured>(&begun)) {
    return finish(std::move(known), std::move(*measured));
  }
  if (stopped() || cancel_requested()) {
    forget(known.id);
    return std::optional<Verdict>();
  }
  const Order& order = std::get<Order>(begun);  // not Busy: one at a time
  auto measured = outside([&] { return parts_.station->measure(order, parts_.phase); });
  if (!measured) {
    forget(known.id);
    return tl::unexpected<Error>(std::move(measured.error()));
  }
  return finish(std::move(known), std::move(*measured));
}

// Takes over better ceilings and diagnoses everything anew that was diagnosed at others.
Result<void> Bench::adopt(const Ceilings& ceilings) {
  ++revisions_;
  machine_.ceilings = ceilings;
  std::vector<Store::Revision> revisions;
  for (const KnownPtr& known : ledger_.history()) {
    if (known->evaluation.correct() == nullptr) continue;
    KP_ASSIGN(auto whole, parts_.store->candidate(known->id, true));
    if (whole.evidence.items().empty()) continue;
    set_ceilings(machine_, &whole.evidence);
    revisions.push_back({known->id, diagnose(whole.evidence, record_), {}});
  }
  KP_TRY(parts_.store->revise(revisions, &machine_));
  for (const Store::Revision& each : revisions) ledger_.revise(each.id, each.diagnosis);
  evidence_.clear();
  return {};
}

// Puts the ceilings into new evidence, and has them remeasured if it casts doubt on them.
Result<void> Bench::check(Evidence* evidence) {
  Station* station = parts_.station;
  Machine machine = machine_;
  const bool better = outside([&] {
    return check_ceilings([&] { return station->remeasure(); }, &watch_,
                          station->machine().ceilings, &machine, evidence);
  });
  return better ? adopt(machine.ceilings) : Result<void>();
}

Result<std::optional<Bench::Verdict>> Bench::finish(Known known, Measured measured) {
  const std::int64_t id = known.id;
  forget(id);
  if (!measured.evaluation) return std::optional<Verdict>();
  known.evaluation = std::move(*measured.evaluation);
  Evidence evidence = measured.evidence;  // the station's goes into the store
  if (!evidence.items().empty()) KP_TRY(check(&evidence));
  known.diagnosis = diagnose(known.evaluation, evidence, record_);
  KP_ASSIGN(const auto step, step_of(known));
  KP_ASSIGN(auto taught, fact(known));
  KP_TRY(parts_.store->finish(id, known.evaluation, measured.evidence, known.diagnosis,
                              parts_.elapsed_s(), step ? &*step : nullptr));
  if (raw()) evidence_[id] = std::move(evidence);
  if (!known.evaluation.code.empty()) by_code_.emplace(known.evaluation.code, id);
  Verdict verdict;
  if (step) verdict.note = learn(*step);
  const std::string remembered = taught ? remember(std::move(*taught)) : "";
  verdict.note += (verdict.note.empty() || remembered.empty() ? "" : "; ") + remembered;
  verdict.better = ledger_.record(std::move(known));
  verdict.known = ledger_.find(id);
  return std::optional<Verdict>(std::move(verdict));
}

Result<bool> Bench::profile(std::int64_t id, Station* station) {
  const RunSettings& settings = *parts_.settings;
  const KnownPtr known = ledger_.find(id);
  if (settings.target != TargetKind::kCuda || settings.counters == CounterSet::kOff ||
      known == nullptr || known->evaluation.correct() == nullptr ||
      profiling_s_ > kProfilingShare * parts_.elapsed_s() + kProfilingSeconds ||
      !profiled_.insert(id).second) {
    return false;
  }
  KP_ASSIGN(StoredCandidate stored, parts_.store->candidate(id, true));
  if (has_counters(stored.evidence)) return false;
  Order order;
  order.candidate = stored.known.candidate;
  order.judged = stored.known.evaluation;
  const double from = real_clock().now_s();
  KP_ASSIGN(Measured measured, outside([&] { return station->measure(order, parts_.phase); }));
  profiling_s_ += real_clock().now_s() - from;
  const bool nothing_yet = stored.evidence.items().empty() && stored.evidence.kernels.empty();
  if (!has_counters(measured.evidence) && !nothing_yet) return false;
  const Diagnosis diagnosis = diagnose(at_ceilings(machine_, measured.evidence), record_);
  KP_TRY(parts_.store->revise({{id, diagnosis, std::move(measured.evidence)}}));
  ledger_.revise(id, diagnosis);
  evidence_.erase(id);
  return true;
}

Result<void> Bench::profile_leaders(Station* station) {
  const KnownPtr best = ledger_.best();
  if (best == nullptr) return {};
  KP_TRY(profile(best->id, station));
  if (!parts_.asked_elsewhere) return {};
  std::map<std::string, std::pair<double, std::int64_t>> fastest;  // setting of each source
  for (const KnownPtr& known : ledger_.history()) {
    const double us = ledger_.comparable_us(known->id);
    if (us <= 0 || kNearBest * us > ledger_.comparable_us(best->id)) continue;
    const std::string source =
        known->brief() ? known->source_hash : source_hash(known->candidate.source);
    const auto [at, first] = fastest.try_emplace(source, us, known->id);
    if (!first && us < at->second.first) at->second = {us, known->id};
  }
  for (const auto& [source, setting] : fastest) KP_TRY(profile(setting.second, station));
  return {};
}

Result<std::optional<Evaluation>> Bench::duel(const Candidate& candidate, const Candidate& versus) {
  Order order;
  order.candidate = candidate;
  order.incumbent = versus;
  order.observe = false;
  phase("timing both in turn");
  KP_ASSIGN(auto measured, outside([&] { return parts_.station->measure(order, {}); }));
  return std::move(measured.evaluation);
}

// Measures one finalist against the start in fresh processes; nullopt: cancelled.
Result<std::optional<Evaluation>> Bench::confirm_one(const Known& finalist, const Known& start) {
  if (finalist.id == start.id) return start.evaluation;
  Order order;
  order.candidate = finalist.candidate;
  order.incumbent = start.candidate;
  order.confirm = true;
  order.energy = kConfirmEnergy;
  order.observe = false;
  KP_ASSIGN(auto measured, parts_.station->measure(order, {}));
  return std::move(measured.evaluation);
}

// Whether it is so near the other, by either measure, that it may turn out to be the faster one.
bool Bench::may_beat(const Known& one, const Known& other) const {
  return kNearBest * ledger_.comparable_us(one.id) <= ledger_.comparable_us(other.id) ||
         kNearBest * score_us(one.evaluation) <= score_us(other.evaluation);
}

Result<void> Bench::confirm(const Tell& tell, RunResult* result, std::int64_t first) {
  History finalists = ledger_.finalists();
  if (const KnownPtr preferred = ledger_.find(first)) {
    std::erase(finalists, preferred);
    finalists.insert(finalists.begin(), preferred);
  }
  if (finalists.empty()) {
    result->best = 0;
    return {};
  }
  KP_ASSIGN(const KnownPtr start, whole(ledger_.baseline()->id));
  const Borne& borne = ledger_.borne();
  KnownPtr winner;
  Evaluation confirmed;
  for (std::size_t i = 0; i < finalists.size(); ++i) {
    // The fastest kernel need not use the least energy: then the order of finalists decides.
    const bool by_order = parts_.settings->objective.wants_energy();
    // One that turned out to keep the contract in part only makes way for any that keeps all of it.
    const bool holds = winner != nullptr && !is_partial(*confirmed.correct(), borne);
    if (holds && (by_order || i >= kFinalists)) break;
    if (holds && finalists[i]->id != start->id && !may_beat(*finalists[i], *winner)) continue;
    if (stopped()) {
      result->stopped_by = kStoppedByRequest;
      return {};
    }
    phase("confirming in fresh processes");
    KP_ASSIGN(const KnownPtr finalist, whole(finalists[i]->id));
    auto measured = confirm_one(*finalist, *start);
    if (!measured && !cancel_requested()) {
      return tl::unexpected<Error>(std::move(measured.error()));
    }
    if (cancel_requested() || !*measured) {
      result->stopped_by = kStoppedByRequest;
      return {};
    }
    std::optional<Evaluation>& evaluation = *measured;
    if (evaluation->correct() == nullptr) {
      tell(Event::kUnconfirmed, *finalist, outcome_summary(evaluation->outcome));
      continue;
    }
    const bool better =
        winner == nullptr ||
        (by_order ? outranks(*evaluation->correct(), *confirmed.correct(), borne)
                  : confirmed_better(*evaluation->correct(), *confirmed.correct(), borne));
    if (better) {
      winner = finalist;
      confirmed = std::move(*evaluation);
    }
  }
  result->best = 0;
  if (winner == nullptr) return {};
  set_confirmed(*winner, *start, confirmed, result);
  StoredConfirmation stored{
      winner->id, confirmed, result->stopped_by, result->own_ms_per_evaluation, {}};
  KP_ASSIGN(const auto all, measure_held_out(*winner, *start, &stored.held_out));
  if (!all) {
    result->stopped_by = kStoppedByRequest;
    return {};
  }
  result->held_out = held_out_text(stored.held_out);
  KP_TRY(parts_.store->confirm(stored));
  tell(Event::kConfirmed, *winner,
       number(result->speedup, 3) +
           (ledger_.start()->id == start->id ? "x the start" : "x the first correct one"));
  return {};
}

}  // namespace kernelpro
