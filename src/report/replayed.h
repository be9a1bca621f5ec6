// SPDX-License-Identifier: Apache-2.0
// Compares a replayed run with its recording: which results changed. Pure.
#pragma once

#include <string>
#include <vector>

#include "report/view.h"
#include "run/store/recorded.h"

namespace kernelpro {

enum class Change { kSame, kFaster, kSlower, kOutcome, kNotMeasured };
std::string change_words(Change change);  // "as recorded", "faster", ...

struct Replayed {
  RecordedResult then;
  const StoredCandidate* now = nullptr;  // into the view; null: not measured again
  std::string outcome;                   // now; "" = not measured
  double us = 0;                         // now; 0: not correct
  double speedup = 0;                    // over the start, now; 0: not correct
  Change change = Change::kSame;
};

// Machines differ in speed, so times are compared as speedups over the start. A result whose
// speedup differs by more than this fraction counts as changed.
inline constexpr double kReplayTolerance = 0.05;

// The recorded candidates by id; empty for a run that is not a replay.
std::vector<Replayed> replayed(const RunView& view, const Story& story);
// "Of 25 recorded results 23 came out as recorded, 1 is slower, 1 has a different outcome."
std::string replayed_summary(const std::vector<Replayed>& rows);
// As text, one line for each changed result; "" when none changed.
std::string replayed_text(const std::vector<Replayed>& rows);

}  // namespace kernelpro
