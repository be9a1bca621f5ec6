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
  const std::size_t at = history_.size();
  const bool is_new = by_id_.emplace(stored.known.id, at).second;
  KP_ASSERT(is_new);
  const auto added = std::make_shared<Known>(std::move(stored.known));
  history_.push_back(added);
  Entry& entry = entries_.emplace_back(Entry{stored.promise, {}});
  ++since_best_;
  const Correct* correct = added->evaluation.correct();
  if (correct == nullptr) {
    ++failures_;
    ++kinds_[outcome_name(added->evaluation.outcome)];
    return false;
  }
  const std::string hash = content_hash(*added);
  entry.comparable = comparables_.add(hash, added->evaluation);
  added->comparable = entry.comparable.us;
  if (baseline_ == kNone) baseline_ = at;
  if (!champions_.empty() && !is_better(*correct)) return false;
  champions_.push_back(at);
  best_hash_ = hash;
  since_best_ = 0;
  return true;
}

const Correct& Ledger::held() const { return *history_[champions_.back()]->evaluation.correct(); }

bool Ledger::is_better(const Correct& correct) const {
  if (outranks(correct, held())) return true;
  if (outranks(held(), correct)) return false;
  if (!correct.versus) return false;
  if (correct.versus->incumbent == best_hash_) return beats(correct, objective_, min_effect_);
  const Comparable* then = comparables_.find(correct.versus->incumbent);
  if (objective_.wants_energy() || then == nullptr) return false;
  const std::size_t at = champions_.back();
  const auto& best = history_[at]->evaluation.correct()->versus;
  const double unsure = best && best->ratio > 0 ? best->high / best->ratio : 1;
  const double since = then->us / entries_[at].comparable.us * unsure;
  return correct.versus->low / since > 1 + min_effect_;
}

std::size_t Ledger::place(std::int64_t id) const {
  const auto it = by_id_.find(id);
  return it == by_id_.end() ? kNone : it->second;
}

void Ledger::complete(Known whole) {
  const std::size_t at = by_id_.at(whole.id);
  auto completed = std::make_shared<Known>(std::move(whole));
  completed->comparable = entries_[at].comparable.us;
  history_[at] = std::move(completed);
}

std::string Ledger::failures_by_kind() const {
  std::string text;
  for (const auto& [kind, count] : kinds_) {
    if (!text.empty()) text += ", ";
    text += std::to_string(count) + " " + kind;
  }
  return text;
}

KnownPtr Ledger::find(std::int64_t id) const {
  const std::size_t at = place(id);
  return at == kNone ? nullptr : history_[at];
}

double Ledger::comparable_us(std::int64_t id) const {
  const std::size_t at = place(id);
  return at == kNone ? 0 : entries_[at].comparable.us;
}

Promise Ledger::promise(std::int64_t id) const {
  const std::size_t at = place(id);
  return at == kNone ? Promise() : entries_[at].promise;
}

double Ledger::comparable_us(const Evaluation& evaluation) const {
  return comparables_.of(evaluation).us;
}

double Ledger::cost(std::int64_t id) const {
  const std::size_t at = place(id);
  const Correct* correct = at == kNone ? nullptr : history_[at]->evaluation.correct();
  return correct == nullptr ? 0 : cost_of(entries_[at].comparable.us, *correct, objective_);
}

History Ledger::finalists() const {
  if (champions_.empty()) return {};
  std::vector<std::size_t> chosen = {champions_.back()};
  const auto take = [&](std::size_t at) {
    if (std::find(chosen.begin(), chosen.end(), at) == chosen.end()) chosen.push_back(at);
  };
  std::size_t comparable = kNone;
  std::size_t absolute = kNone;
  const auto us = [this](std::size_t at) { return score_us(history_[at]->evaluation); };
  for (std::size_t at = 0; at < history_.size(); ++at) {
    const Correct* correct = history_[at]->evaluation.correct();
    if (correct == nullptr || outranks(held(), *correct)) continue;
    const double time = entries_[at].comparable.us;
    if (comparable == kNone || time < entries_[comparable].comparable.us) comparable = at;
    if (absolute == kNone || us(at) < us(absolute)) absolute = at;
  }
  if (!objective_.wants_energy()) {
    take(comparable);
    take(absolute);
  }
  for (auto it = champions_.rbegin(); it != champions_.rend(); ++it) take(*it);
  History result;
  for (const std::size_t at : chosen) result.push_back(history_[at]);
  return result;
}

SpeedUp Ledger::best_speedup() const {
  if (champions_.empty()) return {};
  return speedup(entries_[baseline_].comparable, entries_[champions_.back()].comparable);
}

void Ledger::revise(std::int64_t id, const Diagnosis& diagnosis) {
  const std::size_t at = by_id_.at(id);
  auto revised = std::make_shared<Known>(*history_[at]);
  revised->diagnosis = diagnosis;
  history_[at] = std::move(revised);
  entries_[at].promise = promise_of(diagnosis);
}

}  // namespace kernelpro
