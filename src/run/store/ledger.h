// SPDX-License-Identifier: Apache-2.0
// What a run knows so far: all evaluations in order, the best, failures by kind. A pure function of
// the sequence of evaluations, so that a resumed run has the same ledger.
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
#include "run/store/comparable.h"

namespace kernelpro {

class Ledger {
 public:
  // A newcomer replaces the best when it is better by the objective (faster, if that is time) by
  // more than `min_effect` with 95 % confidence: the lower end of the interval measured in
  // alternation counts. It may have been measured against an earlier best: then what the current
  // best gained since, at the upper end of its interval, is subtracted (time only). Before all that
  // a launch plan is better than a host form (`outranks`, core/evaluation/evaluation.h).
  explicit Ledger(double min_effect, const Objective& objective = {})
      : min_effect_(min_effect), objective_(objective) {}

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
  // The first correct candidate (the start, unless that failed) and the best; nullptr: none yet.
  KnownPtr baseline() const { return baseline_ == kNone ? nullptr : history_[baseline_]; }
  KnownPtr best() const { return champions_.empty() ? nullptr : history_[champions_.back()]; }

  // Candidates for a last comparison: the best, the one with the least comparable time and the one
  // with the least raw time (they may differ on a machine whose speed drifts), then every earlier
  // best, latest first. No duplicates. If energy counts: the bests only, latest first.
  History finalists() const;

  // A candidate's time on the baseline's scale: its incumbent's divided by the ratio measured in
  // alternation, so that drift of the machine between evaluations cancels. 0 when not correct.
  double comparable_us(std::int64_t id) const;
  // The same for an evaluation not recorded yet.
  double comparable_us(const Evaluation& evaluation) const;
  // What a search compares: comparable_us, or the objective's combination of it and the energy; 0
  // when unknown.
  double cost(std::int64_t id) const;
  // The gain that its diagnosis still promises.
  Promise promise(std::int64_t id) const;
  // Versus the baseline, by comparable times; 1 when there is none. The 95 % interval comes from
  // the ratios between them.
  SpeedUp best_speedup() const;
  // Replaces a candidate's diagnosis after the machine's ceilings were measured again. REQUIRES: it
  // is recorded.
  void revise(std::int64_t id, const Diagnosis& diagnosis);

 private:
  static constexpr std::size_t kNone = SIZE_MAX;
  struct Entry {
    Promise promise;
    Comparable comparable;
  };
  std::size_t place(std::int64_t id) const;  // in the history; kNone: it is not there
  bool is_better(const Correct& correct) const;
  const Correct& held() const;  // the best's. REQUIRES: there is one

  double min_effect_;
  Objective objective_;
  History history_;
  std::vector<Entry> entries_;  // in the same order
  std::unordered_map<std::int64_t, std::size_t> by_id_;
  Comparables comparables_;
  std::map<std::string, int> kinds_;
  std::vector<std::size_t> champions_;  // every past best, in order; the last is the current one
  std::size_t baseline_ = kNone;
  std::string best_hash_;
  int failures_ = 0;
  int since_best_ = 0;
};

}  // namespace kernelpro
