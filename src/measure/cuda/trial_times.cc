// SPDX-License-Identifier: Apache-2.0
// CudaTrial: whether a measured time may be believed. Unseen inputs, the physical floor and many
// calls in a row must not contradict it.
#include <algorithm>
#include <utility>

#include "base/text.h"
#include "core/evaluation/label.h"
#include "core/evaluation/load.h"
#include "measure/cuda/audit.h"
#include "measure/cuda/floor.h"
#include "measure/cuda/trial.h"
#include "measure/judge/probes.h"

namespace kernelpro {

namespace {

constexpr double kSlowReference = 2;  // seconds; slower ones are not rerun for each candidate
constexpr double kLeastCalls = 2, kMostCalls = 20000;  // in a row
constexpr double kRowSlack = 2, kRowFactor = 10;       // seconds, and of the time that they take

void slow_down(double by, CudaTimed* timed) {
  for (double* us : {&timed->timing.median_us, &timed->timing.low_us, &timed->timing.high_us}) {
    *us *= by;
  }
  if (!timed->ratio) return;
  for (double* ratio : {&timed->ratio->low, &timed->ratio->mid, &timed->ratio->high}) *ratio /= by;
}

}  // namespace

// A kernel that is slower on unseen inputs cached results or got lucky: use the slower time.
CudaTrial::Verdict CudaTrial::audit(CudaCase& state, CudaTimed* timed) {
  if (timed->fresh || shop_.settings.policy != Policy::kContract) return std::optional<Outcome>();
  if (state.reference_s > kSlowReference) {
    label(Label::kNoFreshAudit);
    return std::optional<Outcome>();
  }
  KP_ASSIGN(auto audited, audit_fresh(shop_.judge, shop_.reference, worker_, state, *timed, timing_,
                                      &correct_.max_error));
  if (auto* outcome = std::get_if<Outcome>(&audited)) {
    return std::optional<Outcome>(std::move(*outcome));
  }
  const Freshness& found = std::get<Freshness>(audited);
  if (!found.slower) return std::optional<Outcome>();
  const std::string sentence = "a call takes " + human_us(found.fresh_us) + " on new inputs, but " +
                               human_us(found.known_us) + " on repeated ones (case " +
                               state.c->name + ")";
  return slower_counts(found.large ? "memoised" : "", sentence, found.fresh_us / found.known_us,
                       timed);
}

// A second measurement was slower than the first, by the factor `by`. A large difference breaks
// `rule`, unless other processes use the GPU: they may have slowed only the second one. Then, and
// without a rule, the slower time counts, so that causing load never pays.
CudaTrial::Verdict CudaTrial::slower_counts(const std::string& rule, const std::string& sentence,
                                            double by, CudaTimed* timed) {
  std::string why;
  if (!rule.empty()) {
    const int others = shop_.others();
    if (others == 0) return std::optional<Outcome>(Rejected{rule, sentence});
    why = ", since " + load_text(Load{.gpu_processes = static_cast<double>(others)});
  }
  slow_down(std::max(1.0, by), timed);
  correct_.notes.push_back(sentence + ": the slower time counts" + why);
  return std::optional<Outcome>();
}

CudaTrial::Verdict CudaTrial::check_floors(CudaCase& state, const CudaTimed& timed) {
  const double us = timed.timing.median_us;
  if (us < physical_floor_us(state, shop_.machine)) {
    // A task that reads a slice or a triangle does not need all of its inputs.
    KP_ASSIGN(const auto shares, needed_shares(shop_.judge, shop_.reference, state));
    if (const double floor = physical_floor_us(state, shop_.machine, shares); us < floor) {
      return std::optional<Outcome>(
          Rejected{"physical-floor", "a time of " + human_us(us) + " in case " + state.c->name +
                                         " is below the least that moving the data takes, " +
                                         human_us(floor)});
    }
  }
  if (us >= measured_floor_us(shop_.task, state, shop_.machine)) return std::optional<Outcome>();
  label(Label::kAboveMeasuredCeiling);
  return check(state);
}

// Whoever uses a kernel loads it once and calls it thousands of times, one call directly behind
// another: a counter that is never reset, or a race that is lost once in a thousand times, shows
// only there. All other calls are few for each load, and the host waits between them.
CudaTrial::Verdict CudaTrial::call_in_a_row(CudaCase& state, double call_us) {
  if (timing_.row_s <= 0 || worker_.module || shop_.settings.policy != Policy::kContract) {
    return std::optional<Outcome>();
  }
  const double calls = std::clamp(timing_.row_s / (call_us * 1e-6), kLeastCalls, kMostCalls);
  const double limit_s = kRowSlack + kRowFactor * calls * call_us * 1e-6;
  const int set =
      static_cast<int>(fresh_secret() % static_cast<std::uint64_t>(state.plan.rotation));
  KP_TRY(poison(shop_.judge, state, {{set, fresh_secret()}}, true));
  allowance_->limit_s += limit_s;
  const auto number_of_calls = static_cast<std::int64_t>(calls);
  const std::string row = std::to_string(number_of_calls) + " calls in a row";
  const Answer answer = worker_.link.ask({{"do", "row"},
                                          {"case", state.c->name},
                                          {"subject", "candidate"},
                                          {"set", set},
                                          {"key", fresh_secret()},
                                          {"calls", number_of_calls}},
                                         limit_s);
  if (!std::holds_alternative<Reply>(answer)) {
    return std::optional<Outcome>(
        worker_outcome(answer, "making " + row + ", " + doing("in", state), state.c->name));
  }
  KP_ASSIGN(auto wrong, verify(shop_.judge, state, {set}, true, {}, &correct_.max_error));
  if (!wrong) return std::optional<Outcome>();
  if (auto* result = std::get_if<WrongResult>(&wrong->outcome)) {
    result->reason += ". This was the last of " + row +
                      ": whatever a call leaves behind (counters, flags) must serve any number of "
                      "further ones";
  }
  return std::optional<Outcome>(std::move(wrong->outcome));
}

}  // namespace kernelpro
