// SPDX-License-Identifier: Apache-2.0
// How the candidates of a run compare: which one is the baseline, which the best, and how much
// faster each is. The one answer for the loop (run/store/ledger.h), its prompts, reports, suites
// and everything else that reads a run. A pure function of the evaluations in their order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/evaluation/objective.h"
#include "core/proposal/proposal.h"
#include "run/store/comparable.h"

namespace kernelpro {

// Candidates are named by their position in the order of evaluation.
class CandidateRanking {
 public:
  static constexpr std::size_t kNone = SIZE_MAX;
  // A newcomer replaces the best when it is better by the objective (faster, if that is time) by
  // more than kLeastEffect with 95 % confidence: the lower end of the interval measured in
  // alternation counts. It may have been measured against an earlier best: then what the current
  // best gained since, at the upper end of its interval, is subtracted (time only). Before all that
  // labels decide: a launch plan is better than a host form, and what keeps the whole contract
  // better than what keeps a part of it (`outranks`, core/evaluation/evaluation.h).
  explicit CandidateRanking(const Objective& objective = {}) : objective_(objective) {}

  // Adds the next evaluated candidate, which may be in brief; true if it is the new best.
  bool add(const Known& known);

  // The first correct candidate: the start, unless that failed. Speed-ups are over it.
  std::size_t baseline() const { return baseline_; }
  std::size_t best() const { return champions_.empty() ? kNone : champions_.back(); }
  // Every past best, in order; the last is the current one.
  const std::vector<std::size_t>& champions() const { return champions_; }

  // A candidate's time on the baseline's scale: its incumbent's divided by the ratio measured in
  // alternation, so that drift of the machine between evaluations cancels. 0 us when not correct.
  const Comparable& time(std::size_t at) const { return times_[at]; }
  // The start's labels, if it is correct.
  const Borne& borne() const { return borne_; }
  // The same for an evaluation that was not added.
  Comparable time(const Evaluation& evaluation) const { return comparables_.of(evaluation); }
  // Over the baseline; nullopt when not correct. The 95 % interval comes from the ratios between
  // them.
  std::optional<SpeedUp> speedup_of(std::size_t at) const;
  // What a search compares: the comparable time, or the objective's combination of it and the
  // energy; 0 when unknown. `evaluation`: the one that was added there.
  double cost(std::size_t at, const Evaluation& evaluation) const;

 private:
  bool is_better(const Correct& correct) const;

  Objective objective_;
  Comparables comparables_;
  std::vector<Comparable> times_;
  std::vector<std::size_t> champions_;
  std::size_t baseline_ = kNone;
  Correct best_;  // the best's result, if there is one, and its content hash
  std::string best_hash_;
  Borne borne_;
};

}  // namespace kernelpro
