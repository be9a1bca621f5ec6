// SPDX-License-Identifier: Apache-2.0
// CudaTrial: other values of the same shapes. Does the kernel compute the task?
#include <algorithm>
#include <numeric>
#include <utility>

#include "base/text.h"
#include "core/evaluation/label.h"
#include "core/task/key.h"
#include "measure/cuda/audit.h"
#include "measure/cuda/passes.h"
#include "measure/cuda/trial.h"
#include "measure/judge/probe_shapes.h"

namespace kernelpro {

namespace {

constexpr double kSlowReference = 2;    // seconds
constexpr int kFewProbes = 2;           // at such a reference, or without sets that keep contents
constexpr double kSlowToWiden = 0.5;    // seconds: such a reference is left to the confirmation
constexpr double kLongCall = 1;         // seconds: of such calls ...
constexpr int kProbesOfLongCalls = 8;   // ... no more than so many kinds
constexpr double kSlowUntimed = 0.1;    // ... of a case that is not timed
constexpr std::uint64_t kKept = 4;      // contents that are ready serve this often, on average
constexpr std::size_t kCompanions = 3;  // calls on given contents around a probe's
constexpr double kValuesSlackUs = 0.5;  // beyond kValuesFactor: the clock's steps
constexpr double kValuesCalls = 5;      // on each of the two, at most ...
constexpr double kValuesSeconds = 0.2;  // ... and for at most this long

}  // namespace

// Those that did not lie among timed calls (trial_timed_probes.cc). At every size: what is checked
// anywhere is a size that somebody needs. Runs last, because a kernel may crash here and still be
// right on the task's inputs.
CudaTrial::Verdict CudaTrial::probe_cases() {
  if (crashed_) return std::optional<Outcome>();  // by a probe among timed calls
  const bool faster = !ratios_.empty() && mean_ratio(ratios_).low > 1 + shop_.settings.min_effect;
  if (faster && !is_partial(correct_, {})) lead();
  for (const bool timed : {true, false}) {
    for (CudaCase& state : shop_.cases) {
      if (state.c->timed != timed) continue;
      Verdict verdict = probe(state);
      if (!verdict || *verdict || crashed_) return verdict;
      if (leads_ && is_partial(correct_, {})) return verdict;
    }
  }
  return std::optional<Outcome>();
}

CudaTrial::Verdict CudaTrial::probe(CudaCase& state) {
  KP_ASSIGN(const ChosenProbes* chosen_here, chosen(state));
  const bool multiplied = multiplies(shop_.task, *state.c);
  for (const std::size_t i : chosen_here->order) {
    const ProbePlan& plan = chosen_here->plans[i];
    // What was right among timed calls is only called again to compare times.
    const auto known = chosen_here->timed.find(i);
    const bool compared = state.c->timed && keeps_time(plan.kind, multiplied);
    if (known != chosen_here->timed.end() && (!known->second || !compared)) continue;
    Verdict verdict = probe_once(state, plan, i);
    if (!verdict || *verdict) return verdict;
    // One failure is enough for it not to lead.
    if (crashed_ || (leads_ && !failures_.empty())) break;
  }
  compare_pooled_times(state);
  return judge_found();
}

// Faster than its incumbent: it would become the best, and others would be built on it. Then all
// kinds are run, also where a search runs a few.
void CudaTrial::lead() {
  if (longest_call_s_ > kLongCall) return;
  leads_ = most_kinds_ > 0;
  most_kinds_ = 0;
  for (auto& [state, kinds] : chosen_) {
    if (state->reference_s > kSlowToWiden) continue;
    kinds.order.resize(kinds.plans.size());
    std::iota(kinds.order.begin(), kinds.order.end(), std::size_t{0});
  }
}

// Drawn once for each case, before it is timed.
Result<CudaTrial::ChosenProbes*> CudaTrial::chosen(CudaCase& state) {
  if (const auto known = chosen_.find(&state); known != chosen_.end()) return &known->second;
  ChosenProbes made;
  made.plans = plan_probes(shop_.task);
  KP_ASSIGN(const bool sparse, sparse_applies(state));
  std::erase_if(made.plans, [&](const ProbePlan& plan) {
    return state.idle.contains(plan.kind) ||
           (wants_products(plan.kind) && plan.kind != DrawKind::kFaint && !sparse) ||
           (plan.kind == DrawKind::kFaint && !multiplies(shop_.task, *state.c)) ||
           (has_short_sums(plan.kind) && state.contractions.empty());
  });
  int most = most_kinds_;
  made.costly = state.plan.extra <= kProbeSets || state.reference_s > kSlowReference;
  if (most > 0 && made.costly) most = std::min(most, kFewProbes);
  if (longest_call_s_ > kLongCall && (most == 0 || most > kProbesOfLongCalls)) {
    most = kProbesOfLongCalls;
  }
  const bool counts = state.c->timed || std::none_of(shop_.cases.begin(), shop_.cases.end(),
                                                     [](const CudaCase& c) { return c.c->timed; });
  if (!counts && (most > 0 || made.costly || state.reference_s > kSlowUntimed)) most = kFewProbes;
  std::vector<char> resident;
  for (std::size_t i = 0; i < made.plans.size(); ++i) {
    const auto& held = state.contents[static_cast<std::size_t>(state.probe_set(i))];
    resident.push_back(held && is_of(*held, made.plans[i]));
  }
  made.order = choose_probes(resident, most, fresh_secret());
  return &chosen_.emplace(&state, std::move(made)).first->second;
}

// What failures and norms since the last time mean.
CudaTrial::Verdict CudaTrial::judge_found() {
  ProbeVerdict verdict = judge_probes(shop_.task.precision, failures_, norms_);
  failures_.clear();
  norms_.clear();
  if (verdict.rejected) return std::optional<Outcome>(std::move(*verdict.rejected));
  for (std::size_t k = 0; k < verdict.labels.size(); ++k) {
    const auto& known = correct_.labels;
    if (std::find(known.begin(), known.end(), verdict.labels[k]) != known.end()) continue;
    label(verdict.labels[k]);
    correct_.notes.push_back(std::move(verdict.notes[k]));
  }
  return std::optional<Outcome>();
}

// How far a set's results are from the expected ones, where that of honest kernels is known.
Result<void> CudaTrial::note_norms(const CudaCase& state, DrawKind kind, int set) {
  const auto& held = state.contents[static_cast<std::size_t>(set)];
  const auto named =
      held && held->kind == kind ? named_kind(*held, shop_.task) : std::pair(kind, -1);
  const std::vector<Deviation>* nudged = nullptr;
  if (shows_products(kind)) {
    if (const auto known = state.nudged.find(kind); known != state.nudged.end()) {
      nudged = &known->second;
    }
  } else if (shows_lost(kind)) {
    if (const auto known = state.lost.find(named); known != state.lost.end()) {
      nudged = &known->second;
    }
  } else if (const auto known = state.norms.find(named); known != state.norms.end()) {
    nudged = &known->second;
  }
  if (nudged == nullptr || nudged->empty() || state.lesser[static_cast<std::size_t>(set)]) {
    return {};
  }
  KP_ASSIGN(const std::vector<Deviation> got, deviations(shop_.judge, state, set));
  std::size_t output = 0;
  for (const Shaped& t : state.tensors) {
    if (t.tensor->role != Role::kOutput) continue;
    const std::size_t at = output++;
    const bool single = t.tensor->dtype == DType::kFp32;
    if (!is_floating(t.tensor->dtype) || (shows_products(kind) && !single)) continue;
    NormError error{state.c->name, t.tensor->name, got[at],        (*nudged)[at],
                    kind,          t.shape,        t.tensor->dtype};
    error.length = plain_length(shop_.task, *state.c, state.reach);
    error.linear = state.linear && !state.linear->empty();
    error.accounted = norms_account_for_all(shop_.task, *state.c);
    error.named = named.second;
    error.tolerance = t.tensor->tolerance;
    add_norm(error, &norms_);
  }
  return {};
}

// Linearity belongs to the task and is found once.
Result<bool> CudaTrial::sparse_applies(CudaCase& state) {
  if (shop_.task.precision != Precision::kFp32 || !multiplies(shop_.task, *state.c)) return false;
  KP_ASSIGN(const std::vector<int> linear,
            shop_.reference.linear_inputs(state, state.probe_set(0)));
  return !linear.empty();
}

// What the set holds already, mostly: a reference costs more than a candidate's call.
SetContent CudaTrial::probe_content(const CudaCase& state, const ProbePlan& plan, int set,
                                    bool keep) {
  const auto& held = state.contents[static_cast<std::size_t>(set)];
  if (held && is_of(*held, plan) && (keep || fresh_secret() % kKept != 0)) return *held;
  return fresh_content(plan);
}

SetContent CudaTrial::fresh_content(const ProbePlan& plan) const {
  return {plan.tensor >= 0 ? naming_key(plan.kind, shop_.task, plan.tensor) : fresh_key(),
          plan.kind};
}

// Whether a set's contents are those of a probe.
bool CudaTrial::is_of(const SetContent& content, const ProbePlan& plan) const {
  if (content.kind != plan.kind) return false;
  return plan.tensor < 0 || named_kind(content, shop_.task).second == plan.tensor;
}

// The contents of a probe into a set; with `keep`, those that it holds, if it does. False: it tells
// nothing here.
Result<bool> CudaTrial::fill_probe(CudaCase& state, const ProbePlan& plan, int set, bool keep) {
  if (changes_parameters(plan.kind) && state.shares_parameters(set)) return false;
  auto filled = shop_.reference.fill(state, set, probe_content(state, plan, set, keep));
  if (filled && filled->changed && !filled->usable && probe_varies(plan.kind)) {
    // Another draw may tell.
    filled = shop_.reference.fill(state, set, fresh_content(plan));
  }
  // If the reference cannot take these values, the probe is inconclusive.
  if (!filled && filled.error().kind == ErrorKind::kTask) return false;
  if (!filled) return tl::unexpected<Error>(filled.error());
  if (!filled->changed) state.idle.insert(plan.kind);
  return filled->changed && filled->usable;
}

CudaTrial::Verdict CudaTrial::probe_once(CudaCase& state, const ProbePlan& plan,
                                         std::size_t place) {
  const DrawKind kind = plan.kind;
  const int set = state.probe_set(place);
  KP_ASSIGN(const bool usable, fill_probe(state, plan, set));
  if (!usable) return std::optional<Outcome>();
  const SetKeys keys = {{set, fresh_secret()}};
  KP_TRY(poison(shop_.judge, state, keys, true));
  KP_ASSIGN(auto ran, run_on(state, keys));
  if (ran) {
    if (perhaps_killed(*ran)) return ran;
    failures_.push_back(probe_failure(kind, state.c->name, *ran, state.tensors));
    crashed_ = !worker_.link.running() || std::holds_alternative<Crashed>(*ran);
    return std::optional<Outcome>();
  }
  const std::size_t failed = failures_.size();
  Verdict looked = look_at_probe(state, kind, set);
  if (!looked || *looked || failures_.size() > failed) return looked;
  return probe_among_others(state, kind, set);
}

// Whether the results of a call on the probe's set are right; notes failures.
CudaTrial::Verdict CudaTrial::look_at_probe(CudaCase& state, DrawKind kind, int set) {
  double ignored = 0;
  KP_ASSIGN(const auto wrong, verify(shop_.judge, state, {set}, true, {}, &ignored));
  if (wrong) {
    failures_.push_back(probe_failure(kind, state.c->name, wrong->outcome, state.tensors));
    return std::optional<Outcome>();
  }
  KP_TRY(note_norms(state, kind, set));
  return std::optional<Outcome>();
}

// The probe again, as one of the calls of a pass like those that are timed, at a random place after
// an untimed call: what a kernel does in the first call after it was loaded proves nothing about
// the others.
CudaTrial::Verdict CudaTrial::probe_among_others(CudaCase& state, DrawKind kind, int set) {
  std::vector<int> given;
  for (const int other : secret_order(state.plan.rotation, fresh_secret())) {
    if (other != set && given.size() <= kCompanions) given.push_back(other);
  }
  if (given.empty() || !shop_.settings.timing) return std::optional<Outcome>();
  for (const int other : given) {
    const auto& held = state.contents[static_cast<std::size_t>(other)];
    if (held && held->kind == DrawKind::kGiven) continue;
    KP_TRY(shop_.reference.fill(state, other, {fresh_key(), DrawKind::kGiven}));
  }
  const int warm = given.size() > 1 ? given.back() : given.front();
  if (given.size() > 1) given.pop_back();
  // Times tell nothing where none is reported.
  const bool compared = state.c->timed && keeps_time(kind, multiplies(shop_.task, *state.c));
  const double affordable = kValuesSeconds / std::max(call_s_, 1e-6);
  const int passes = compared ? static_cast<int>(std::clamp(affordable, 1.0, kValuesCalls)) : 1;
  std::vector<double> given_us, probe_us;
  for (int pass = 0; pass < passes; ++pass) {
    std::vector<int> sets = given;
    const auto place = static_cast<std::ptrdiff_t>(fresh_secret() % (sets.size() + 1));
    sets.insert(sets.begin() + place, set);
    KP_ASSIGN(auto called, call_once(shop_.judge, worker_, state, sets, warm, timing_));
    if (const auto* outcome = std::get_if<Outcome>(&called)) {
      if (perhaps_killed(*outcome)) return std::optional<Outcome>(*outcome);
      failures_.push_back(probe_failure(kind, state.c->name, *outcome, state.tensors));
      crashed_ = !worker_.link.running() || std::holds_alternative<Crashed>(*outcome);
      return std::optional<Outcome>();
    }
    const std::size_t failed = failures_.size();
    Verdict looked = look_at_probe(state, kind, set);
    if (!looked || *looked || failures_.size() > failed) return looked;
    KP_ASSIGN(auto wrong, verify(shop_.judge, state, given, true, {}, &correct_.max_error));
    if (wrong) return std::optional<Outcome>(std::move(wrong->outcome));
    KP_TRY(note_norms(state, DrawKind::kGiven, given[fresh_secret() % given.size()]));
    const std::vector<double>& us = std::get<std::vector<double>>(called);
    for (std::size_t k = 0; k < us.size(); ++k) {
      (sets[k] == set ? probe_us : given_us).push_back(us[k]);
    }
  }
  if (compared) compare_times(state, kind, given_us, probe_us);
  return std::optional<Outcome>();
}

// Of all kinds together: a few times that scatter show nothing, many do.
void CudaTrial::compare_pooled_times(const CudaCase& state) {
  const std::vector<double> given_us = std::exchange(pooled_given_us_, {});
  const std::vector<double> probe_us = std::exchange(pooled_probe_us_, {});
  const std::string name(label_name(Label::kTimeDependsOnValues));
  const auto& labels = correct_.labels;
  if (std::find(labels.begin(), labels.end(), name) != labels.end() ||
      !slower_beyond_chance(given_us, probe_us, kValuesFactor, kValuesSlackUs)) {
    return;
  }
  label(name);
  correct_.notes.push_back("calls take " + human_us(median(probe_us)) +
                           " on other values, taken together, but " + human_us(median(given_us)) +
                           " on the task's own (case " + state.c->name + ")");
}

// A kernel that takes another path for these values effectively runs a different kernel.
void CudaTrial::compare_times(const CudaCase& state, DrawKind kind,
                              const std::vector<double>& given_us,
                              const std::vector<double>& probe_us) {
  pooled_given_us_.insert(pooled_given_us_.end(), given_us.begin(), given_us.end());
  pooled_probe_us_.insert(pooled_probe_us_.end(), probe_us.begin(), probe_us.end());
  const double a = median(given_us), b = median(probe_us);
  if (std::max(a, b) <= kValuesFactor * std::min(a, b) + kValuesSlackUs) return;
  // A handful of calls whose times scatter, as they do where Python waits for the GPU, shows
  // nothing.
  const Interval given = median_interval(given_us), probe = median_interval(probe_us);
  if (given.low <= probe.high && probe.low <= given.high) return;
  label(Label::kTimeDependsOnValues);
  correct_.notes.push_back("a call takes " + human_us(b) + " " + probe_words(kind) + ", but " +
                           human_us(a) + " on the task's own (case " + state.c->name + ")");
}

}  // namespace kernelpro
