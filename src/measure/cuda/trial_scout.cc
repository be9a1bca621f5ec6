// SPDX-License-Identifier: Apache-2.0
// CudaTrial: a short look at a variant of a source that was judged, which is no faster in most
// cases.
#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "measure/cuda/trial.h"

namespace kernelpro {

bool may_scout(const std::vector<CudaCase>& cases, const Subject& subject,
               const Subject* incumbent) {
  if (!subject.variant || incumbent == nullptr) return false;
  for (const Subject* each : {&subject, incumbent}) {
    if (std::ranges::any_of(each->binaries, [](const Binary& binary) {
          return binary.form == Binary::Form::kModule;
        })) {
      return false;
    }
  }
  return std::ranges::count_if(cases, [](const CudaCase& each) { return each.c->timed; }) == 1;
}

Result<CudaTrial::Sight> CudaTrial::look_briefly(CudaCase& state) {
  CudaTimingPlan plan = timing_;
  plan.hint_us = call_s_ * 1e6;
  plan.brief = true;
  plan.fresh = false;
  KP_ASSIGN(auto looked, time_cuda_case(shop_.judge, shop_.reference, worker_, other_, state, plan,
                                        &correct_.max_error));
  if (std::holds_alternative<Outcome>(looked)) return Sight::kFailed;
  CudaTimed& timed = std::get<CudaTimed>(looked);
  KP_ASSIGN(const bool changed, forget_broken_sets(shop_.judge, state));
  if (changed || !timed.ratio) return Sight::kFailed;
  // Less than what processes differ by could not be told in full either.
  const double spread = process_spread(timed.timing.median_us);
  if (timed.ratio->mid > 1 + std::max(timing_.min_effect, spread)) return Sight::kPerhapsAhead;
  correct_.notes.push_back(
      "after " + std::to_string(timed.timing.samples) +
      " calls it is no faster than what it was compared with: neither timed further "
      "nor probed");
  ratios_.push_back(widened(*timed.ratio, spread));
  correct_.timings.push_back(std::move(timed.timing));
  return Sight::kBehind;
}

Result<CudaTrial::Sight> CudaTrial::scout(const Subject& subject, const Subject& incumbent) {
  begin(subject, &incumbent);
  Sight sight = Sight::kFailed;
  for (std::size_t i = 0; i < shop_.cases.size(); ++i) {
    CudaCase& state = shop_.cases[i];
    KP_ASSIGN(auto failed, load(worker_, "candidate", state, subject.binaries[i], &facts_));
    if (failed && std::holds_alternative<Rejected>(*failed)) {
      // Nothing of it ran: what the driver says of its code and launches does not change.
      refused_ = std::move(*failed);
      return Sight::kRefused;
    }
    if (failed) return Sight::kFailed;
    KP_ASSIGN(failed, check(state));
    if (failed) return Sight::kFailed;
    KP_ASSIGN(failed, judge_found());
    if (failed) return Sight::kFailed;
    if (!state.c->timed) continue;
    KP_ASSIGN(failed, load(*other_, "incumbent", state, incumbent.binaries[i], nullptr));
    if (failed) return Sight::kFailed;
    const double start = real_clock().now_s();
    KP_ASSIGN(sight, look_briefly(state));
    time_s_ += real_clock().now_s() - start;
    if (sight != Sight::kBehind) return sight;
  }
  return sight;
}

}  // namespace kernelpro
