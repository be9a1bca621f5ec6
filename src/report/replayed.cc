// SPDX-License-Identifier: Apache-2.0
#include "report/replayed.h"

#include <cmath>
#include <map>

#include "base/text.h"

namespace kernelpro {

namespace {

Change change_of(const Replayed& row, bool comparable) {
  if (row.now == nullptr) return Change::kNotMeasured;
  if (row.outcome != row.then.outcome) return Change::kOutcome;
  if (!comparable || row.then.speedup <= 0 || row.speedup <= 0) return Change::kSame;
  const double ratio = row.speedup / row.then.speedup;
  if (ratio > 1 + kReplayTolerance) return Change::kFaster;
  return ratio * (1 + kReplayTolerance) < 1 ? Change::kSlower : Change::kSame;
}

std::string result_words(const std::string& outcome, double us, double speedup) {
  if (us <= 0) return outcome;
  return human_us(us) + " (" + speedup_text(speedup) + ")";
}

}  // namespace

std::string change_words(Change change) {
  switch (change) {
    case Change::kSame:
      return "as recorded";
    case Change::kFaster:
      return "faster";
    case Change::kSlower:
      return "slower";
    case Change::kOutcome:
      return "a different outcome";
    case Change::kNotMeasured:
      return "not measured again";
  }
  return "";
}

std::vector<Replayed> replayed(const RunView& view, const Story& story) {
  const Recorded recorded = recorded_from_json(view.header.recorded_json);
  std::map<std::string, const StoredCandidate*> by_hash;
  for (const StoredCandidate& each : view.candidates) {
    if (each.evaluated) by_hash[each.known.candidate.content_hash()] = &each;
  }
  // Speedups compare only if the recording's baseline is ours, too.
  bool comparable = false;
  std::vector<Replayed> rows;
  for (const RecordedResult& then : recorded.results) {
    Replayed row;
    row.then = then;
    const auto found = by_hash.find(then.hash);
    if (found != by_hash.end()) {
      row.now = found->second;
      row.outcome = outcome_name(row.now->known.evaluation.outcome);
      row.us = score_us(row.now->known.evaluation);
      row.speedup = story.speedup_of(row.now->known.id);
      comparable |= row.now == story.baseline && std::abs(then.speedup - 1) < 1e-9;
    }
    rows.push_back(std::move(row));
  }
  for (Replayed& row : rows) row.change = change_of(row, comparable);
  return rows;
}

std::string replayed_summary(const std::vector<Replayed>& rows) {
  std::map<Change, int> counts;
  for (const Replayed& row : rows) ++counts[row.change];
  std::string text = "Of " + std::to_string(rows.size()) + " recorded results ";
  bool first = true;
  for (const auto& [change, count] : counts) {
    text += (first ? "" : ", ") + std::to_string(count) +
            (change == Change::kSame      ? " came out "
             : change == Change::kOutcome ? (count == 1 ? " has " : " have ")
                                          : (count == 1 ? " is " : " are ")) +
            change_words(change);
    first = false;
  }
  return text + ".";
}

std::string replayed_text(const std::vector<Replayed>& rows) {
  std::string text;
  for (const Replayed& row : rows) {
    if (row.change == Change::kSame) continue;
    text += "  #" + std::to_string(row.then.id) + " " + change_words(row.change) + ": recorded " +
            result_words(row.then.outcome, row.then.us, row.then.speedup);
    if (row.now != nullptr) text += ", now " + result_words(row.outcome, row.us, row.speedup);
    text += "\n";
  }
  return text;
}

}  // namespace kernelpro
