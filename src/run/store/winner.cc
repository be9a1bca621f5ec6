// SPDX-License-Identifier: Apache-2.0
#include "run/store/winner.h"

#include <algorithm>
#include <map>

#include "run/store/settings.h"

namespace kernelpro {

namespace {

Objective objective_of(const RunHeader& header) {
  return settings_from_json(header.settings_json).value_or(RunSettings()).objective;
}

}  // namespace

std::vector<const StoredCandidate*> in_order(const std::vector<StoredCandidate>& candidates) {
  std::vector<const StoredCandidate*> all;
  for (const StoredCandidate& candidate : candidates) {
    if (candidate.evaluated) all.push_back(&candidate);
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const auto* a, const auto* b) { return a->order < b->order; });
  return all;
}

RankedRun::RankedRun(const RunHeader& header, const std::vector<StoredCandidate>& candidates)
    : order(in_order(candidates)), ranking(objective_of(header)) {
  for (const StoredCandidate* each : order) ranking.add(each->known);
}

void make_comparable(const RunHeader& header, std::vector<StoredCandidate>* candidates) {
  const RankedRun run(header, *candidates);
  std::map<std::int64_t, double> times;
  for (std::size_t i = 0; i < run.order.size(); ++i) {
    times[run.order[i]->known.id] = run.ranking.time(i).us;
  }
  for (StoredCandidate& each : *candidates) {
    if (each.evaluated) each.known.comparable = times[each.known.id];
  }
}

Winner winner_of(const RankedRun& run, const StoredConfirmation* confirmation,
                 const std::function<bool(const StoredCandidate&)>& eligible) {
  const auto may_win = [&](const StoredCandidate* each) {
    return each->known.evaluation.correct() != nullptr && (!eligible || eligible(*each));
  };
  for (const StoredCandidate* each : run.order) {
    const bool confirmed = confirmation != nullptr && confirmation->best == each->known.id;
    if (confirmed && may_win(each)) return {each, true};
  }
  if (run.best() != nullptr && may_win(run.best())) return {run.best(), false};
  Winner winner;
  double least_us = 0;
  for (std::size_t i = 0; i < run.order.size(); ++i) {
    const StoredCandidate* each = run.order[i];
    const double us = run.ranking.time(i).us;
    if (us <= 0 || !may_win(each)) continue;
    if (winner.candidate != nullptr) {
      const Correct& mine = *each->known.evaluation.correct();
      const Correct& other = *winner.candidate->known.evaluation.correct();
      if (!beats(mine, us, other, least_us, run.ranking.borne())) continue;
    }
    winner.candidate = each;
    least_us = us;
  }
  return winner;
}

double confirmed_fraction(const Known& winner, const Evaluation& confirmed) {
  const double us = score_us(confirmed), then = score_us(winner.evaluation);
  const double fraction = winner.diagnosis.fraction_of_ceiling;
  return us > 0 && then > 0 ? fraction * then / us : fraction;
}

}  // namespace kernelpro
