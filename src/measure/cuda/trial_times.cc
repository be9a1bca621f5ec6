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
constexpr std::int64_t kFirstCalls = 64, kMostCalls = 20000;  // in a row, at most
constexpr int kRowParts = 11;
constexpr double kRowSlack = 5, kRowFactor = 20;  // seconds, and of the time that calls take

std::int64_t calls_in(double seconds, double call_s, std::int64_t most) {
  return std::clamp(static_cast<std::int64_t>(seconds / call_s), std::int64_t{1}, most);
}

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

// A kernel's users load it once and call it thousands of times, without waiting in between: a
// counter that overflows, or a lost arrival at a barrier, shows only there. All other calls are few
// for each load. A part's last call is checked, and outputs are poisoned anew for each part, so
// that a kernel that has stopped working cannot leave an earlier result there.
CudaTrial::Verdict CudaTrial::call_in_a_row(CudaCase& state, double call_us) {
  if (timing_.row_s <= 0 || worker_.module || shop_.settings.policy != Policy::kContract) {
    return std::optional<Outcome>();
  }
  double call_s = call_us * 1e-6;
  if (timing_.row_s < kRowParts * call_s) return std::optional<Outcome>();  // nobody makes many
  const Lap lap(&row_s_);
  const std::int64_t first = calls_in(timing_.row_s / kRowParts, call_s, kFirstCalls);
  std::int64_t made = 0, usual = first;
  for (int part = 0; part < kRowParts; ++part) {
    // The first part loads the kernel, the second tells what a call costs with the host's work, and
    // the last is one call.
    const std::int64_t calls = part + 1 == kRowParts ? 1 : part < 2 ? first : usual;
    const double limit_s = kRowSlack + kRowFactor * static_cast<double>(calls) * call_s;
    double took_s = 0;
    Verdict wrong = row_part(state, calls, made + calls, limit_s, part == 0, &took_s);
    if (!wrong || *wrong) return wrong;
    made += calls;
    if (part != 1) continue;
    call_s = std::max(call_s, took_s / static_cast<double>(calls));
    usual = calls_in(timing_.row_s / kRowParts, call_s, kMostCalls / kRowParts);
  }
  return std::optional<Outcome>();
}

// `number`: of the part's last call.
CudaTrial::Verdict CudaTrial::row_part(CudaCase& state, std::int64_t calls, std::int64_t number,
                                       double limit_s, bool load, double* took_s) {
  const int set =
      static_cast<int>(fresh_secret() % static_cast<std::uint64_t>(state.plan.rotation));
  KP_TRY(poison(shop_.judge, state, {{set, fresh_secret()}}, true));
  allowance_->limit_s += limit_s;
  const std::string advice =
      ": whatever state a call leaves behind (counters, flags) must be valid for the next one, "
      "however many there are";
  const double start = real_clock().now_s();
  const Answer answer = worker_.link.ask({{"do", "row"},
                                          {"case", state.c->name},
                                          {"subject", "candidate"},
                                          {"set", set},
                                          {"key", fresh_secret()},
                                          {"load", load},
                                          {"calls", calls}},
                                         limit_s);
  *took_s = real_clock().now_s() - start;
  allowance_->limit_s -= std::max(0.0, limit_s - *took_s);  // further calls gain nothing by it
  if (!std::holds_alternative<Reply>(answer)) {
    return std::optional<Outcome>(
        worker_outcome(answer,
                       "making " + std::to_string(calls) + " calls in a row, after " +
                           std::to_string(number - calls) + ", " + doing("in", state) + advice,
                       state.c->name));
  }
  KP_ASSIGN(auto wrong, verify(shop_.judge, state, {set}, true, {}, &correct_.max_error));
  if (!wrong) return std::optional<Outcome>();
  if (auto* result = std::get_if<WrongResult>(&wrong->outcome)) {
    result->reason += ". This was call " + std::to_string(number) + " of many in a row" + advice;
  }
  return std::optional<Outcome>(std::move(wrong->outcome));
}

}  // namespace kernelpro
