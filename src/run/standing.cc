// SPDX-License-Identifier: Apache-2.0
#include "run/standing.h"

#include <utility>
#include <vector>

#include "run/proposers.h"
#include "run/store/held_out.h"
#include "run/store/winner.h"

namespace kernelpro {

std::unique_ptr<Stopper> make_stopper(const RunSettings& settings) {
  std::vector<std::unique_ptr<Stopper>> all;
  all.push_back(stop_near_ceiling(settings.near_ceiling));
  all.push_back(stop_after_evaluations(settings.max_evaluations));
  all.push_back(stop_after_seconds(settings.max_seconds));
  all.push_back(stop_at_plateau(settings.plateau));
  if (proposer_of(settings).asks_models) {
    all.push_back(stop_when_little_is_expected(settings.least_gain));
  }
  return first_of(std::move(all));
}

Standing standing_of(const Ledger& ledger, const Machine& machine) {
  Standing standing;
  standing.evaluations = ledger.evaluations();
  standing.since_best = ledger.since_best();
  if (const KnownPtr best = ledger.best()) {
    standing.has_correct = true;
    standing.fraction_of_ceiling = best->diagnosis.fraction_of_ceiling;
    standing.ceiling_disturbed = !machine.ceilings.quiet;
  }
  return standing;
}

Progress progress_of(const Ledger& ledger, const Machine& machine, const Known* known) {
  Progress p;
  if (known != nullptr) {
    p.candidate = known->id;
    p.outcome = outcome_name(known->evaluation.outcome);
    p.knobs = knobs_to_text(known->candidate.knobs);
    p.time_us = score_us(known->evaluation);
  }
  p.evaluations = ledger.evaluations();
  p.failures = ledger.failures();
  p.failures_by_kind = ledger.failures_by_kind();
  if (const KnownPtr best = ledger.best()) {
    p.best_us = score_us(best->evaluation);
    const SpeedUp speedup = ledger.best_speedup();
    p.best_speedup = speedup.ratio;
    p.best_speedup_low = speedup.low;
    p.best_speedup_high = speedup.high;
    p.fraction_of_ceiling = best->diagnosis.fraction_of_ceiling;
    p.ceiling_disturbed = !machine.ceilings.quiet;
  }
  return p;
}

RunResult unconfirmed_result(const Ledger& ledger) {
  RunResult result;
  result.evaluations = ledger.evaluations();
  if (const KnownPtr best = ledger.best()) {
    result.best = best->id;
    result.best_us = score_us(best->evaluation);
    result.fraction_of_ceiling = best->diagnosis.fraction_of_ceiling;
    const SpeedUp speedup = ledger.best_speedup();
    result.speedup = speedup.ratio;
    result.speedup_low = speedup.low;
    result.speedup_high = speedup.high;
  }
  return result;
}

void set_confirmed(const Known& winner, const Known& baseline, const Evaluation& confirmed,
                   RunResult* result) {
  result->best = winner.id;
  result->best_us = score_us(confirmed);
  result->fraction_of_ceiling = confirmed_fraction(winner, confirmed);
  result->speedup = result->speedup_low = result->speedup_high = 1;
  const Correct* correct = confirmed.correct();
  if (winner.id == baseline.id || correct == nullptr || !correct->versus) return;
  result->speedup = correct->versus->ratio;
  result->speedup_low = correct->versus->low;
  result->speedup_high = correct->versus->high;
}

bool take_confirmation(const Ledger& ledger, const StoredConfirmation& stored, RunResult* result) {
  const KnownPtr winner = ledger.find(stored.best), baseline = ledger.baseline();
  if (winner == nullptr || baseline == nullptr) return false;
  set_confirmed(*winner, *baseline, stored.evaluation, result);
  result->held_out = held_out_text(stored.held_out);
  return true;
}

}  // namespace kernelpro
