// SPDX-License-Identifier: Apache-2.0
// Everything the reports show about one run, read from its store, and the results derived from it.
// Rendering is a pure function of a RunView, so tests build one by hand.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "core/evaluation/load.h"
#include "run/store/comparable.h"
#include "run/store/store.h"
#include "search/search.h"

namespace kernelpro {

struct RunView {
  std::string directory;
  RunHeader header;
  // With comparable times; with evidence: the start and the best.
  std::vector<StoredCandidate> candidates;
  std::optional<StoredConfirmation> confirmation;
  std::vector<ToolStep> steps;    // outcomes of findings
  std::vector<ModelCall> calls;   // questions to models
  std::vector<SearchNode> nodes;  // of the rebuilt search; empty if its kind is unknown here
  double run_seconds = 0;
  std::vector<std::string> open_requests;  // folders of the exchange that wait for a kernel
};

// Opens the store read-only; the run may be live.
Result<RunView> load_run_view(const std::string& directory);
// In a fraction of that time, for a page that follows a run: evaluated candidates in brief
// (core/proposal/proposal.h) and in the order of evaluation, except for the start and the best.
Result<RunView> load_brief_view(const Store& store, const std::string& directory);

// The outcome of a run. Pointers are into the view.
struct Story {
  const StoredCandidate* start = nullptr;
  const StoredCandidate* baseline =
      nullptr;                            // the first correct one: the start, unless that failed
  const StoredCandidate* best = nullptr;  // confirmed winner, else the best so far
  bool confirmed = false;
  double speedup = 1, low = 1, high = 1;  // over the baseline
  double baseline_us = 0, best_us = 0;    // from their evaluations
  // From the confirmation's fresh processes, if confirmed; otherwise from `speedup`.
  double final_baseline_us = 0, final_us = 0;
  // Of every correct candidate over the baseline, from ratios of interleaved measurements
  // (run/store/ranking.h); not confirmed.
  std::map<std::int64_t, SpeedUp> speedups;
  double speedup_of(std::int64_t id) const {  // 0: not known
    const auto found = speedups.find(id);
    return found == speedups.end() ? 0 : found->second.ratio;
  }
  LoadSummary load;     // of the machine while candidates were timed
  double fraction = 0;  // of the measured ceiling, for `best`
  double baseline_fraction = 0;
  int evaluated = 0, failed = 0;
  std::map<std::string, int> outcomes;       // by outcome_name
  std::vector<const StoredCandidate*> path;  // from the start to the best
  std::map<std::int64_t, const StoredCandidate*> by_id;
  Borne borne;  // the start's labels (run/store/ranking.h)
};
Story tell(const RunView& view);
// "start", or "first correct candidate".
std::string_view baseline_words(const Story& story);

// The result in one sentence, with its confidence interval and fraction of the ceiling.
std::string verdict(const RunView& view, const Story& story);
// Which proposer wrote the structure and which chose the numbers.
std::string credit(const Story& story);
// "7.42x"
std::string speedup_text(double ratio);

std::string render_html(const RunView& view);
std::string render_text(const RunView& view);
std::string render_json(const RunView& view);

}  // namespace kernelpro
