// SPDX-License-Identifier: Apache-2.0
// What a run knows so far: all evaluations in order, how they rank (run/store/ranking.h), failures
// by kind. A pure function of the sequence of evaluations, so that a resumed run has the same
// ledger.
//
// Candidates of a resumed run may be in brief (core/proposal/proposal.h), and are handed out so
// until `complete` puts whole ones in their place. The candidates themselves never change, so what
// was handed out stays as it is, for any thread. The ledger is for one thread at a time.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/evaluation/objective.h"
#include "core/proposal/proposal.h"
#include "run/store/brief.h"
#include "run/store/ranking.h"

namespace kernelpro {

class Ledger {
 public:
  explicit Ledger(const Objective& objective = {}) : objective_(objective), ranking_(objective) {}

  // Adds the next evaluation; true if it is the new best.
  bool record(Known known);
  // The same for a stored one, which may be in brief.
  bool record(StoredBrief stored);
  // Replaces a candidate that was recorded in brief by the whole one, as read from the store.
  // REQUIRES: it is recorded.
  void complete(Known whole);

  int evaluations() const { return static_cast<int>(history_.size()); }
  int failures() const { return failures_; }
  int since_best() const { return since_best_; }
  std::string failures_by_kind() const;  // "2 compile-error, 1 wrong-result"

  KnownPtr find(std::int64_t id) const;  // nullptr: not recorded
  const History& history() const { return history_; }
  // The run's first candidate, the baseline and the best (run/store/ranking.h); nullptr: none yet.
  KnownPtr start() const { return history_.empty() ? nullptr : history_.front(); }
  KnownPtr baseline() const { return known_at(ranking_.baseline()); }
  KnownPtr best() const { return known_at(ranking_.best()); }

  // Candidates for a last comparison: the best, the one with the least comparable time and the one
  // with the least raw time (they may differ on a machine whose speed drifts), then every earlier
  // best, latest first. No duplicates. If energy counts: the bests only, latest first.
  History finalists() const;

  // CandidateRanking::time in microseconds; 0 when not correct.
  double comparable_us(std::int64_t id) const;
  // The same for an evaluation not recorded yet.
  double comparable_us(const Evaluation& evaluation) const { return ranking_.time(evaluation).us; }
  // CandidateRanking::cost.
  double cost(std::int64_t id) const;
  // The gain that its diagnosis still promises.
  Promise promise(std::int64_t id) const;
  // Versus the baseline; 1 when there is none.
  SpeedUp best_speedup() const;
  // The candidate with this content hash among all that were the best; nullptr: none.
  KnownPtr champion(const std::string& content_hash) const;
  const Borne& borne() const { return ranking_.borne(); }  // CandidateRanking::borne
  // Replaces a candidate's diagnosis after the machine's ceilings were measured again. REQUIRES: it
  // is recorded.
  void revise(std::int64_t id, const Diagnosis& diagnosis);

 private:
  static constexpr std::size_t kNone = CandidateRanking::kNone;
  std::size_t place(std::int64_t id) const;  // in the history; kNone: it is not there
  KnownPtr known_at(std::size_t at) const { return at == kNone ? nullptr : history_[at]; }

  Objective objective_;
  CandidateRanking ranking_;
  History history_;
  std::vector<Promise> promises_;  // in the same order
  std::unordered_map<std::int64_t, std::size_t> by_id_;
  std::map<std::string, int> kinds_;
  int failures_ = 0;
  int since_best_ = 0;
};

}  // namespace kernelpro
