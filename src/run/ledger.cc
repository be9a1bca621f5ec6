// SPDX-License-Identifier: Apache-2.0
#include "run/ledger.h"

#include <algorithm>

#include "base/error.h"

namespace kernelpro {

bool Ledger::record(Known known) {
  KP_ASSERT(by_id_.find(known.id) == by_id_.end());
  all_.push_back(std::move(known));
  const Known& added = all_.back();
  by_id_[added.id] = &added;
  ++since_best_;
  const Correct* correct = added.evaluation.correct();
  if (correct == nullptr) {
    ++failures_;
    ++kinds_[outcome_name(added.evaluation.outcome)];
    return false;
  }
  const std::string hash = added.candidate.content_hash();
  const double time = comparable_us(added.evaluation);
  comparable_[added.id] = time;
  comparable_by_hash_[hash] = time;
  if (baseline_ == nullptr) baseline_ = &added;
  if (!champions_.empty() && !is_better(*correct)) return false;
  champions_.push_back(&added);
  best_hash_ = hash;
  since_best_ = 0;
  return true;
}

bool Ledger::is_better(const Correct& correct) const {
  if (!correct.versus) return false;
  if (correct.versus->incumbent == best_hash_) return beats(correct, objective_, min_effect_);
  const auto then = comparable_by_hash_.find(correct.versus->incumbent);
  if (objective_.wants_energy() || then == comparable_by_hash_.end()) return false;
  const Correct::Versus& best = *champions_.back()->evaluation.correct()->versus;
  const double since = then->second / comparable_us(champions_.back()->id) * best.high / best.ratio;
  return correct.versus->low / since > 1 + min_effect_;
}

std::string Ledger::failures_by_kind() const {
  std::string text;
  for (const auto& [kind, count] : kinds_) {
    if (!text.empty()) text += ", ";
    text += std::to_string(count) + " " + kind;
  }
  return text;
}

const Known* Ledger::find(std::int64_t id) const {
  const auto it = by_id_.find(id);
  return it == by_id_.end() ? nullptr : it->second;
}

std::vector<const Known*> Ledger::history() const {
  std::vector<const Known*> history;
  for (const Known& known : all_) history.push_back(&known);
  return history;
}

double Ledger::comparable_us(std::int64_t id) const {
  const auto it = comparable_.find(id);
  return it == comparable_.end() ? 0 : it->second;
}

double Ledger::comparable_us(const Evaluation& evaluation) const {
  const Correct* correct = evaluation.correct();
  if (correct == nullptr) return 0;
  if (correct->versus && correct->versus->ratio > 0) {
    const auto incumbent = comparable_by_hash_.find(correct->versus->incumbent);
    if (incumbent != comparable_by_hash_.end()) return incumbent->second / correct->versus->ratio;
  }
  return score_us(evaluation);
}

double Ledger::cost(std::int64_t id) const {
  const Known* known = find(id);
  const Correct* correct = known == nullptr ? nullptr : known->evaluation.correct();
  return correct == nullptr ? 0 : cost_of(comparable_us(id), *correct, objective_);
}

std::vector<const Known*> Ledger::finalists() const {
  std::vector<const Known*> result;
  const auto take = [&](const Known* known) {
    const bool fresh =
        known != nullptr && std::find(result.begin(), result.end(), known) == result.end();
    if (fresh) result.push_back(known);
  };
  const Known* comparable = nullptr;
  const Known* absolute = nullptr;
  for (const Known& known : all_) {
    if (known.evaluation.correct() == nullptr) continue;
    const bool closer =
        comparable == nullptr || comparable_us(known.id) < comparable_us(comparable->id);
    if (closer) comparable = &known;
    const bool faster =
        absolute == nullptr || score_us(known.evaluation) < score_us(absolute->evaluation);
    if (faster) absolute = &known;
  }
  take(best());
  if (!objective_.wants_energy()) {
    take(comparable);
    take(absolute);
  }
  for (auto it = champions_.rbegin(); it != champions_.rend(); ++it) take(*it);
  return result;
}

double Ledger::best_speedup() const {
  if (best() == nullptr || comparable_us(best()->id) <= 0) return 1;
  return comparable_us(baseline_->id) / comparable_us(best()->id);
}

}  // namespace kernelpro
