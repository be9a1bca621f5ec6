// SPDX-License-Identifier: Apache-2.0
// What a run knows so far: every evaluation in order, who is best, how many failed and how. A pure
// function of the sequence of evaluations, so that a resumed run has the same ledger.
//
// Candidates of a resumed run may be in brief (core/proposal.h). They become whole, where they are,
// when somebody asks for them by id or as best, baseline or finalist; those of `history` and
// `champions` stay as they are until then. One thread at a time.
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
  // A newcomer replaces the best when it is better by the objective (faster, where that is time) by
  // more than `min_effect` with 95 % confidence: the lower end of the interval measured in turn. It
  // may have been measured against who was best when its measurement began: then what the best of
  // today gained since, at the upper end of its own interval, is taken off (time alone).
  explicit Ledger(double min_effect, const Objective& objective = {})
      : min_effect_(min_effect), objective_(objective) {}

  // Takes the next evaluation; true when it is the new best.
  bool record(Known known);
  // The same of a stored one, which may be in brief.
  bool record(StoredBrief stored);
  // Reads one of them from where it is stored. Throws Fatal when that cannot be done.
  using Fetch = std::function<Known(std::int64_t id)>;
  void fetch_from(Fetch fetch) { fetch_ = std::move(fetch); }

  int evaluations() const { return static_cast<int>(all_.size()); }
  int failures() const { return failures_; }
  int since_best() const { return since_best_; }
  std::string failures_by_kind() const;  // "2 compile-error, 1 wrong-result"

  const Known* find(std::int64_t id) const;
  const Known* find_brief(std::int64_t id) const;  // as it is; maybe in brief
  std::vector<const Known*> history() const;       // in order of evaluation
  // The first correct candidate (the start, unless that failed) and the best; nullptr: none yet.
  const Known* baseline() const { return whole(baseline_); }
  const Known* best() const { return champions_.empty() ? nullptr : whole(champions_.back()); }
  // Everyone who was best, in order; the last is best now.
  const std::vector<const Known*>& champions() const { return champions_; }

  // Who might be fastest, for a last comparison: the best, the least comparable time and the least
  // time of all (on a machine whose speed drifts they may differ), then everyone else who was best,
  // latest first. No one twice. Where energy counts, whoever was best, latest first.
  std::vector<const Known*> finalists() const;

  // Time of a candidate in the baseline's measure: its incumbent's divided by the ratio measured
  // turn by turn, so that drift of the machine between evaluations cancels. 0 when not correct.
  double comparable_us(std::int64_t id) const;
  // The same of an evaluation that is not recorded yet.
  double comparable_us(const Evaluation& evaluation) const;
  // What a search compares: comparable_us, or what the objective makes of it and of the energy; 0
  // when that is not known.
  double cost(std::int64_t id) const;
  // What its diagnosis says is left.
  Promise promise(std::int64_t id) const;
  // Over the baseline, by comparable times; 1 when there is none. The 95 % interval is that of the
  // ratios by which they compare.
  SpeedUp best_speedup() const;
  // Another diagnosis of a candidate: the machine's ceilings were measured again. REQUIRES: it is
  // recorded.
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
  mutable std::deque<Entry> all_;  // addresses stay; brief ones become whole
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
