// SPDX-License-Identifier: Apache-2.0
// CudaTrial: whether a measured time may be believed. Unseen inputs, other values, the supervisor's
// own clock and the physical floor must not contradict it.
#include <algorithm>
#include <cmath>
#include <utility>

#include "base/clock.h"
#include "base/text.h"
#include "core/key.h"
#include "core/load.h"
#include "measure/cuda/audit.h"
#include "measure/cuda/floor.h"
#include "measure/cuda/passes.h"
#include "measure/cuda/trial.h"
#include "measure/judge/probes.h"

namespace kernelpro {

namespace {

constexpr double kLoopSeconds = 0.1;  // time for the supervisor's own timing of a module
constexpr double kLoopFactor = 1.25;  // over the module process's own figure, and over idle loops
constexpr double kLoopSlackUs = 50;   // Python overhead of a module
constexpr int kLoopTries = 3;         // the fastest counts
constexpr int kIdleLoops = 5;
constexpr double kSlowReference = 2;  // seconds; slower ones are not rerun for each candidate

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
    label("no-fresh-audit");
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

// Times consecutive calls in a Python process, one on each of `sets`, by our clock; microseconds.
// Subject "" measures only the loop's overhead.
Result<std::variant<double, Outcome>> CudaTrial::loop(const CudaCase& state, const char* subject,
                                                      const std::vector<int>& sets,
                                                      double* submitted_us) {
  const double start = real_clock().now_s();
  const Answer answer = worker_.link.ask(
      {{"do", "loop"}, {"case", state.c->name}, {"subject", subject}, {"sets", sets}},
      timing_.timeout_s + 5);
  const double us = (real_clock().now_s() - start) * 1e6;
  using Looped = std::variant<double, Outcome>;
  const auto* reply = std::get_if<Reply>(&answer);
  if (reply == nullptr) {
    return Looped(worker_outcome(answer, doing("timing", state), state.c->name));
  }
  if (submitted_us != nullptr) *submitted_us = JsonReader(reply->json).real("submitted_us");
  return Looped(us);
}

// Runs before the process has any candidate code.
CudaTrial::Verdict CudaTrial::time_idle_loops() {
  for (const CudaCase& state : shop_.cases) {
    if (!state.c->timed) continue;
    std::vector<double> all;
    for (int k = 0; k < kIdleLoops; ++k) {
      KP_ASSIGN(auto looped,
                loop(state, "", secret_order(state.plan.rotation, fresh_secret()), nullptr));
      if (const auto* us = std::get_if<double>(&looped)) {
        all.push_back(*us);
      } else if (!worker_.link.running()) {
        return std::optional<Outcome>(std::move(std::get<Outcome>(looped)));
      }
    }
    idle_us_[&state] = median(all);  // 0 if the loop fails
  }
  return std::optional<Outcome>();
}

// A Python process holds both the candidate and the clock. Consecutive calls, on unseen contents
// and with compared results, must not take much longer than it reports for each. Calls that take
// Python long to submit do: the verdict notes that.
CudaTrial::Verdict CudaTrial::check_clock(CudaCase& state, CudaTimed* timed) {
  const double us = timed->timing.median_us;
  double least = INFINITY, submitted = 0;
  for (int attempt = 0; attempt < kLoopTries; ++attempt) {
    std::vector<int> sets = secret_order(state.plan.rotation, fresh_secret());
    const double affordable = kLoopSeconds / (us * 1e-6);
    sets.resize(
        static_cast<std::size_t>(std::clamp(affordable, 1.0, static_cast<double>(sets.size()))));
    const bool contract = shop_.settings.policy == Policy::kContract;
    int fresh = contract ? static_cast<int>(kLoopSeconds / std::max(state.reference_s, 1e-4)) : 0;
    SetKeys keys;
    for (const int set : sets) {
      keys.emplace_back(set, fresh_secret());
      if (fresh-- <= 0) continue;
      KP_TRY(shop_.reference.fill(state, set, {fresh_key(), DrawKind::kGiven}));
    }
    KP_TRY(poison(shop_.judge, state, keys, true));
    double submitted_us = 0;
    KP_ASSIGN(auto looped, loop(state, "candidate", sets, &submitted_us));
    if (auto* outcome = std::get_if<Outcome>(&looped)) {
      return std::optional<Outcome>(std::move(*outcome));
    }
    KP_ASSIGN(auto wrong, verify(shop_.judge, state, sets, true, {}, &correct_.max_error));
    if (wrong) return std::optional<Outcome>(std::move(wrong->outcome));
    const double count = static_cast<double>(sets.size());
    const double idle = kLoopFactor * idle_us_[&state] / state.plan.rotation;
    const double each = std::get<double>(looped) / count - idle;
    if (each < least) submitted = submitted_us;
    least = std::min(least, each);
    if (least <= kLoopFactor * us + kLoopSlackUs) return std::optional<Outcome>();
  }
  const std::string sentence = "its process reports " + human_us(us) +
                               " per call, but calls in a row take " + human_us(least) +
                               " each by the supervisor's clock";
  if (least > kLoopFactor * submitted + kLoopSlackUs) {
    return slower_counts("timing", sentence, least / us, timed);
  }
  label("host-bound");
  correct_.notes.push_back(sentence + ": submitting one takes Python " + human_us(submitted));
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
  label("above-measured-ceiling");
  return check(state);
}

}  // namespace kernelpro
