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
// Of calls in a row, over the module process's own figure: a longer time counts instead of it ...
constexpr double kLoopRoom = 1.1;
// ... and much longer ones contradict it.
constexpr double kLoopFactor = 1.25;
constexpr double kLoopSlackUs = 50;  // Python overhead of a module
constexpr double kIdleFactor = 1.25;
constexpr int kLoopTries = 3;  // the fastest counts
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

// Times consecutive calls in a Python process, one on each of `sets`, by our clock. Subject "" is
// the loop alone.
Result<std::variant<CudaTrial::Loop, Outcome>> CudaTrial::loop(CudaWorker& worker,
                                                               const CudaCase& state,
                                                               const char* subject,
                                                               const std::vector<int>& sets) {
  const double start = real_clock().now_s();
  const Answer answer = worker.link.ask(
      {{"do", "loop"}, {"case", state.c->name}, {"subject", subject}, {"sets", sets}},
      timing_.timeout_s + 5);
  const double us = (real_clock().now_s() - start) * 1e6;
  using Looped = std::variant<Loop, Outcome>;
  const auto* reply = std::get_if<Reply>(&answer);
  if (reply == nullptr) {
    return Looped(worker_outcome(answer, doing("timing", state), state.c->name));
  }
  const double count = static_cast<double>(sets.size());
  const auto idle = idle_us_.find({&worker, &state, sets.size()});
  const double without = idle == idle_us_.end() ? 0 : kIdleFactor * idle->second;
  return Looped(Loop{(us - without) / count, JsonReader(reply->json).real("submitted_us")});
}

// Runs before the process has any candidate code. 0 where the loop fails.
CudaTrial::Verdict CudaTrial::time_idle_loops(CudaWorker& worker) {
  for (const CudaCase& state : shop_.cases) {
    if (!state.c->timed) continue;
    for (int count = 1; count <= state.plan.rotation; ++count) {
      std::vector<double> all;
      for (int k = 0; k < kIdleLoops; ++k) {
        std::vector<int> sets = secret_order(state.plan.rotation, fresh_secret());
        sets.resize(static_cast<std::size_t>(count));
        KP_ASSIGN(auto looped, loop(worker, state, "", sets));
        if (const auto* found = std::get_if<Loop>(&looped)) {
          all.push_back(found->us * count);
        } else if (!worker.link.running()) {
          return std::optional<Outcome>(std::move(std::get<Outcome>(looped)));
        }
      }
      idle_us_[{&worker, &state, static_cast<std::size_t>(count)}] = median(all);
    }
  }
  return std::optional<Outcome>();
}

// The fastest of a few loops, each over as many sets with new contents as time allows, with results
// that are compared. `us`: what its process says of a call; a loop that agrees is the last.
Result<std::variant<CudaTrial::Loop, Outcome>> CudaTrial::fresh_loop(CudaWorker& worker,
                                                                     CudaCase& state,
                                                                     const char* subject,
                                                                     double us) {
  using Looped = std::variant<Loop, Outcome>;
  const bool contract = shop_.settings.policy == Policy::kContract;
  const bool fresh = contract && state.reference_s <= kSlowReference;
  const double each_s = us * 1e-6 + (fresh ? state.reference_s : 0);
  Loop least{INFINITY, 0};
  for (int attempt = 0; attempt < kLoopTries; ++attempt) {
    std::vector<int> sets = secret_order(state.plan.rotation, fresh_secret());
    sets.resize(static_cast<std::size_t>(
        std::clamp(kLoopSeconds / each_s, 1.0, static_cast<double>(sets.size()))));
    SetKeys keys;
    for (const int set : sets) {
      keys.emplace_back(set, fresh_secret());
      if (fresh) KP_TRY(shop_.reference.fill(state, set, {fresh_key(), DrawKind::kGiven}));
    }
    KP_TRY(poison(shop_.judge, state, keys, true));
    KP_ASSIGN(Looped looped, loop(worker, state, subject, sets));
    if (std::holds_alternative<Outcome>(looped)) return looped;
    double ignored = 0;
    double* error = &worker == &worker_ ? &correct_.max_error : &ignored;
    KP_ASSIGN(auto wrong, verify(shop_.judge, state, sets, true, {}, error));
    if (wrong) return Looped(std::move(wrong->outcome));
    const Loop& now = std::get<Loop>(looped);
    if (now.us < least.us) least = now;
    if (least.us <= kLoopRoom * us) break;
  }
  return Looped(least);
}

// A Python process holds both the candidate and the clock, and a candidate could work where that
// clock does not look. What calls in a row take by ours, which looks everywhere, counts where it is
// longer; by much more than Python needs to submit the calls, it contradicts the other.
CudaTrial::Verdict CudaTrial::check_clock(CudaCase& state, CudaWorker* incumbent,
                                          CudaTimed* timed) {
  // Before the candidate's time changes, from which the incumbent's is known.
  if (incumbent != nullptr && incumbent->module) {
    KP_TRY(check_incumbents_clock(state, *incumbent, timed));
  }
  if (!worker_.module) return std::optional<Outcome>();
  const double us = timed->timing.median_us;
  KP_ASSIGN(auto looped, fresh_loop(worker_, state, "candidate", us));
  if (auto* outcome = std::get_if<Outcome>(&looped)) {
    return std::optional<Outcome>(std::move(*outcome));
  }
  const Loop& least = std::get<Loop>(looped);
  if (least.us <= kLoopRoom * us) return std::optional<Outcome>();
  std::string sentence = "its process reports " + human_us(us) +
                         " per call, but calls in a row take " + human_us(least.us) +
                         " each by the supervisor's clock";
  const bool contradicts = least.us > kLoopFactor * us + kLoopSlackUs &&
                           least.us > kLoopFactor * least.submitted + kLoopSlackUs;
  if (!contradicts) {
    label("host-bound");
    sentence += " (submitting one takes Python " + human_us(least.submitted) + ")";
  }
  return slower_counts(contradicts ? "timing" : "", sentence, least.us / us, timed);
}

// The same, if the incumbent has no launch plan: its time and its opponent's are measured alike.
Result<void> CudaTrial::check_incumbents_clock(CudaCase& state, CudaWorker& incumbent,
                                               CudaTimed* timed) {
  if (!timed->ratio) return {};
  const double us = timed->ratio->mid * timed->timing.median_us;
  KP_ASSIGN(auto looped, fresh_loop(incumbent, state, "incumbent", us));
  if (const auto* outcome = std::get_if<Outcome>(&looped)) {
    correct_.notes.push_back("the kernel to compare it with: " + outcome_summary(*outcome));
    timed->ratio.reset();
    return {};
  }
  const double by = std::get<Loop>(looped).us / us;
  if (by <= kLoopRoom) return {};
  for (double* ratio : {&timed->ratio->low, &timed->ratio->mid, &timed->ratio->high}) *ratio *= by;
  return {};
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
