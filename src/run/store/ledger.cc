// SPDX-License-Identifier: Apache-2.0
#include "run/store/ledger.h"

#include <algorithm>

#include "base/error.h"

namespace kernelpro {

bool Ledger::record(Known known) {
  const Promise promise = promise_of(known.diagnosis);
  return record(StoredBrief{std::move(known), promise});
}

bool Ledger::record(StoredBrief stored) {
  KP_ASSERT(by_id_.find(stored.known.id) == by_id_.end());
  all_.push_back({std::move(stored.known), stored.promise, {}});
  Entry& entry = all_.back();
  const Known& added = entry.known;
  by_id_[added.id] = &entry;
  ++since_best_;
  const Correct* correct = added.evaluation.correct();
  if (correct == nullptr) {
    ++failures_;
    ++kinds_[outcome_name(added.evaluation.outcome)];
    return false;
  }
  const std::string hash = content_hash(added);
  entry.comparable = comparables_.add(hash, added.evaluation);
  entry.known.comparable = entry.comparable.us;
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
  const Comparable* then = comparables_.find(correct.versus->incumbent);
  if (objective_.wants_energy() || then == nullptr) return false;
  const auto& best = champions_.back()->evaluation.correct()->versus;
  const double unsure = best && best->ratio > 0 ? best->high / best->ratio : 1;
  const double since = then->us / comparable_us(champions_.back()->id) * unsure;
  return correct.versus->low / since > 1 + min_effect_;
}

const Ledger::Entry* Ledger::entry(std::int64_t id) const {
  const auto it = by_id_.find(id);
  return it == by_id_.end() ? nullptr : it->second;
}

const Known* Ledger::whole(const Known* known) const {
  if (known == nullptr || !known->brief()) return known;
  Entry& held = *by_id_.at(known->id);
  held.known = fetch_(known->id);
  held.known.comparable = held.comparable.us;
  return &held.known;
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
  const Entry* found = entry(id);
  return found == nullptr ? nullptr : whole(&found->known);
}

const Known* Ledger::find_brief(std::int64_t id) const {
  const Entry* found = entry(id);
  return found == nullptr ? nullptr : &found->known;
}

std::vector<const Known*> Ledger::history() const {
  std::vector<const Known*> history;
  history.reserve(all_.size());
  for (const Entry& each : all_) history.push_back(&each.known);
  return history;
}

double Ledger::comparable_us(std::int64_t id) const {
  const Entry* found = entry(id);
  return found == nullptr ? 0 : found->comparable.us;
}

Promise Ledger::promise(std::int64_t id) const {
  const Entry* found = entry(id);
  return found == nullptr ? Promise() : found->promise;
}

double Ledger::comparable_us(const Evaluation& evaluation) const {
  return comparables_.of(evaluation).us;
}

double Ledger::cost(std::int64_t id) const {
  const Entry* found = entry(id);
  const Correct* correct = found == nullptr ? nullptr : found->known.evaluation.correct();
  return correct == nullptr ? 0 : cost_of(found->comparable.us, *correct, objective_);
}

std::vector<const Known*> Ledger::finalists() const {
  std::vector<const Known*> result;
  const auto take = [&](const Known* known) {
    const bool fresh =
        known != nullptr && std::find(result.begin(), result.end(), known) == result.end();
    if (fresh) result.push_back(known);
  };
  const Entry* comparable = nullptr;
  const Known* absolute = nullptr;
  for (const Entry& each : all_) {
    if (each.known.evaluation.correct() == nullptr) continue;
    if (comparable == nullptr || each.comparable.us < comparable->comparable.us) comparable = &each;
    const bool faster =
        absolute == nullptr || score_us(each.known.evaluation) < score_us(absolute->evaluation);
    if (faster) absolute = &each.known;
  }
  take(best());
  if (!objective_.wants_energy()) {
    take(comparable == nullptr ? nullptr : &comparable->known);
    take(absolute);
  }
  for (auto it = champions_.rbegin(); it != champions_.rend(); ++it) take(*it);
  for (const Known*& each : result) each = whole(each);
  return result;
}

SpeedUp Ledger::best_speedup() const {
  if (champions_.empty()) return {};
  return speedup(entry(baseline_->id)->comparable, entry(champions_.back()->id)->comparable);
}

void Ledger::revise(std::int64_t id, const Diagnosis& diagnosis) {
  Entry* found = by_id_.at(id);
  found->known.diagnosis = diagnosis;
  found->promise = promise_of(diagnosis);
}

}  // namespace kernelpro
