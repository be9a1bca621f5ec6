// SPDX-License-Identifier: Apache-2.0
// What a run knows so far: all evaluations in order, the best, failures by kind. A pure function of
// the sequence of evaluations, so that a resumed run has the same ledger.
//
// Candidates of a resumed run may be in brief (core/proposal.h). They are completed in place when
// requested by id or as best, baseline or finalist; those of `history` and `champions` stay in
// brief until then. One thread at a time.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/objective.h"
#include "core/proposal.h"
#include "run/store/brief.h"
#include "run/store/comparable.h"

namespace kernelpro {

class Ledger {
 public:
  // A newcomer replaces the best when it is better by the objective (faster, if that is time) by
  // more than `min_effect` with 95 % confidence: the lower end of the interval measured in
  // alternation counts. It may have been measured against an earlier best: then what the current
  // best gained since, at the upper end of its interval, is subtracted (time only).
  explicit Ledger(double min_effect, const Objective& objective = {})
      : min_effect_(min_effect), objective_(objective) {}

  // Adds the next evaluation; true if it is the new best.
  bool record(Known known);
  // The same for a stored one, which may be in brief.
  bool record(StoredBrief stored);
  // Reads a candidate from storage. Throws Fatal on failure.
  using Fetch = std::function<Known(std::int64_t id)>;
  void fetch_from(Fetch fetch) { fetch_ = std::move(fetch); }

  int evaluations() const { return static_cast<int>(all_.size()); }
  int failures() const { return failures_; }
  int since_best() const { return since_best_; }
  std::string failures_by_kind() const;  // "2 compile-error, 1 wrong-result"

  const Known* find(std::int64_t id) const;
  const Known* find_brief(std::int64_t id) const;  // as it is, maybe in brief
  std::vector<const Known*> history() const;       // in order of evaluation
  // The first correct candidate (the start, unless that failed) and the best; nullptr: none yet.
  const Known* baseline() const { return whole(baseline_); }
  const Known* best() const { return champions_.empty() ? nullptr : whole(champions_.back()); }
  // Every past best, in order; the last is the current one.
  const std::vector<const Known*>& champions() const { return champions_; }

  // Candidates for a last comparison: the best, the one with the least comparable time and the one
  // with the least raw time (they may differ on a machine whose speed drifts), then every earlier
  // best, latest first. No duplicates. If energy counts: the bests only, latest first.
  std::vector<const Known*> finalists() const;

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
  struct Entry {
    Known known;
    Promise promise;
    Comparable comparable;
  };
  const Entry* entry(std::int64_t id) const;
  const Known* whole(const Known* known) const;
  bool is_better(const Correct& correct) const;

  double min_effect_;
  Objective objective_;
  Fetch fetch_;
  mutable std::deque<Entry> all_;  // stable addresses; brief ones become whole
  std::unordered_map<std::int64_t, Entry*> by_id_;
  Comparables comparables_;
  std::map<std::string, int> kinds_;
  std::vector<const Known*> champions_;
  const Known* baseline_ = nullptr;
  std::string best_hash_;
  int failures_ = 0;
  int since_best_ = 0;
};

}  // namespace kernelpro
