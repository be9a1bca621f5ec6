// SPDX-License-Identifier: Apache-2.0
#include "run/store/ranking.h"

namespace kernelpro {

bool CandidateRanking::add(const Known& known) {
  const std::size_t at = times_.size();
  const Correct* correct = known.evaluation.correct();
  if (correct == nullptr) {
    times_.emplace_back();
    return false;
  }
  const std::string hash = content_hash(known);
  times_.push_back(comparables_.add(hash, known.evaluation));
  if (baseline_ == kNone) baseline_ = at;
  if (at == 0) borne_ = borne_by(correct);
  if (!champions_.empty() && !is_better(*correct)) return false;
  champions_.push_back(at);
  best_ = *correct;
  best_hash_ = hash;
  return true;
}

bool CandidateRanking::is_better(const Correct& correct) const {
  if (outranks(correct, best_, borne_)) return true;
  if (outranks(best_, correct, borne_)) return false;
  if (!correct.versus) return false;
  if (correct.versus->incumbent == best_hash_) return beats(correct, objective_, kLeastEffect);
  const Comparable* then = comparables_.find(correct.versus->incumbent);
  if (objective_.wants_energy() || then == nullptr) return false;
  const auto& best = best_.versus;
  const double unsure = best && best->ratio > 0 ? best->high / best->ratio : 1;
  const double since = then->us / times_[champions_.back()].us * unsure;
  return correct.versus->low / since > 1 + kLeastEffect;
}

std::optional<SpeedUp> CandidateRanking::speedup_of(std::size_t at) const {
  if (baseline_ == kNone || times_[at].us <= 0) return std::nullopt;
  return speedup(times_[baseline_], times_[at]);
}

double CandidateRanking::cost(std::size_t at, const Evaluation& evaluation) const {
  const Correct* correct = evaluation.correct();
  return correct == nullptr ? 0 : cost_of(times_[at].us, *correct, objective_);
}

}  // namespace kernelpro
