// SPDX-License-Identifier: Apache-2.0
// CudaTrial: screens a variant of a source that was judged, which in most cases is no faster.
#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "base/clock.h"
#include "measure/cuda/forms.h"
#include "measure/cuda/trial.h"

namespace kernelpro {

namespace {

constexpr double kWorthJudging = 1.02;  // however much two processes may differ

}  // namespace

bool may_screen(const std::vector<CudaCase>& cases, const Subject& subject,
                const Subject* incumbent) {
  if (!subject.variant || incumbent == nullptr || is_module(subject) || is_module(*incumbent)) {
    return false;
  }
  const auto timed = [](const CudaCase& each) { return each.c->timed; };
  // Both need sets of their own.
  return std::ranges::count_if(cases, timed) == 1 &&
         std::ranges::find_if(cases, timed)->plan.rotation >= 2;
}

Result<CudaTrial::Screened> CudaTrial::compare_briefly(CudaCase& state) {
  CudaTimingPlan plan = timing_;
  plan.hint_us = call_s_ * 1e6;
  plan.screening = true;
  plan.fresh = false;
  KP_ASSIGN(auto compared, time_cuda_case(shop_.judge, shop_.reference, worker_, other_, state,
                                          plan, &correct_.max_error));
  if (std::holds_alternative<Outcome>(compared)) return Screened::kFailed;
  CudaTimed& timed = std::get<CudaTimed>(compared);
  KP_ASSIGN(const bool changed, forget_broken_sets(shop_.judge, state));
  if (changed || !timed.ratio) return Screened::kFailed;
  // What processes differ by stays as long as they live, and so does this pair.
  const double spread = process_spread(timed.timing.median_us);
  const double unsure = 1 + std::max(timing_.min_effect, spread);
  if (timed.ratio->mid > std::min(unsure, kWorthJudging)) return Screened::kPerhapsAhead;
  correct_.notes.push_back("screened: after " + std::to_string(timed.timing.samples) +
                           " calls not clearly faster than what it was compared with; neither "
                           "timed further nor probed");
  correct_.observed[kScreened] = 1;
  ratios_.push_back(widened(*timed.ratio, spread));
  correct_.timings.push_back(std::move(timed.timing));
  return Screened::kBehind;
}

Result<CudaTrial::Screened> CudaTrial::screen(const Subject& subject, const Subject& incumbent) {
  begin(subject, &incumbent);
  Screened found = Screened::kFailed;
  for (std::size_t i = 0; i < shop_.cases.size(); ++i) {
    CudaCase& state = shop_.cases[i];
    std::map<std::string, double> facts;
    KP_ASSIGN(auto failed, load(worker_, "candidate", state, subject.binaries[i], &facts));
    const bool nothing_ran = i == 0 && subject.binaries[i].form == Binary::Form::kPlanForm;
    if (failed && nothing_ran && std::holds_alternative<Rejected>(*failed)) {
      refused_ = std::move(*failed);  // what the driver says of code and launches does not change
      return Screened::kRefused;
    }
    if (failed) return Screened::kFailed;
    KP_ASSIGN(failed, check(state));
    if (failed) return Screened::kFailed;
    KP_ASSIGN(failed, judge_found());
    if (failed) return Screened::kFailed;
    if (!state.c->timed) continue;
    KP_ASSIGN(failed, load(*other_, "incumbent", state, incumbent.binaries[i], nullptr));
    if (failed) return Screened::kFailed;
    const double start = real_clock().now_s();
    KP_ASSIGN(found, compare_briefly(state));
    time_s_ += real_clock().now_s() - start;
    if (found != Screened::kBehind) return found;
    facts_ = std::move(facts);
  }
  return found;
}

}  // namespace kernelpro
