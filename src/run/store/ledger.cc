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
  promises_.push_back(stored.promise);
  const bool better = ranking_.add(*added);
  added->comparable = ranking_.time(at).us;
  since_best_ = better ? 0 : since_best_ + 1;
  if (added->evaluation.correct() == nullptr) {
    ++failures_;
    ++kinds_[outcome_name(added->evaluation.outcome)];
  }
  return better;
}

void Ledger::complete(Known whole) {
  const std::size_t at = by_id_.at(whole.id);
  auto completed = std::make_shared<Known>(std::move(whole));
  completed->comparable = ranking_.time(at).us;
  history_[at] = std::move(completed);
}

std::size_t Ledger::place(std::int64_t id) const {
  const auto it = by_id_.find(id);
  return it == by_id_.end() ? kNone : it->second;
}

std::string Ledger::failures_by_kind() const {
  std::string text;
  for (const auto& [kind, count] : kinds_) {
    if (!text.empty()) text += ", ";
    text += std::to_string(count) + " " + kind;
  }
  return text;
}

KnownPtr Ledger::champion(const std::string& hash) const {
  for (const std::size_t at : ranking_.champions()) {
    if (content_hash(*history_[at]) == hash) return history_[at];
  }
  return nullptr;
}

KnownPtr Ledger::find(std::int64_t id) const { return known_at(place(id)); }

double Ledger::comparable_us(std::int64_t id) const {
  const std::size_t at = place(id);
  return at == kNone ? 0 : ranking_.time(at).us;
}

Promise Ledger::promise(std::int64_t id) const {
  const std::size_t at = place(id);
  return at == kNone ? Promise() : promises_[at];
}

double Ledger::cost(std::int64_t id) const {
  const std::size_t at = place(id);
  return at == kNone ? 0 : ranking_.cost(at, history_[at]->evaluation);
}

History Ledger::finalists() const {
  if (best() == nullptr) return {};
  const Correct held = *best()->evaluation.correct();
  std::vector<std::size_t> chosen = {ranking_.best()};
  const auto take = [&](std::size_t at) {
    if (std::find(chosen.begin(), chosen.end(), at) == chosen.end()) chosen.push_back(at);
  };
  std::size_t comparable = kNone;
  std::size_t absolute = kNone;
  const auto us = [this](std::size_t at) { return score_us(history_[at]->evaluation); };
  for (std::size_t at = 0; at < history_.size(); ++at) {
    const Correct* correct = history_[at]->evaluation.correct();
    if (correct == nullptr || outranks(held, *correct, ranking_.borne())) continue;
    const double time = ranking_.time(at).us;
    if (comparable == kNone || time < ranking_.time(comparable).us) comparable = at;
    if (absolute == kNone || us(at) < us(absolute)) absolute = at;
  }
  if (!objective_.wants_energy()) {
    take(comparable);
    take(absolute);
  }
  const std::vector<std::size_t>& champions = ranking_.champions();
  for (auto it = champions.rbegin(); it != champions.rend(); ++it) take(*it);
  History result;
  for (const std::size_t at : chosen) result.push_back(history_[at]);
  return result;
}

SpeedUp Ledger::best_speedup() const {
  const std::size_t at = ranking_.best();
  return at == kNone ? SpeedUp() : ranking_.speedup_of(at).value_or(SpeedUp());
}

void Ledger::revise(std::int64_t id, const Diagnosis& diagnosis) {
  const std::size_t at = by_id_.at(id);
  auto revised = std::make_shared<Known>(*history_[at]);
  revised->diagnosis = diagnosis;
  history_[at] = std::move(revised);
  promises_[at] = promise_of(diagnosis);
}

}  // namespace kernelpro
