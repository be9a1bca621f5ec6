// SPDX-License-Identifier: Apache-2.0
// Everything the reports show about one run, read from its store; and what follows from it.
// Rendering is a pure function of a RunView, so tests build one by hand.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "core/load.h"
#include "run/store/comparable.h"
#include "run/store/store.h"
#include "search/search.h"

namespace kernelpro {

struct RunView {
  std::string directory;
  RunHeader header;
  std::vector<StoredCandidate> candidates;  // with evidence: the start and the best
  std::optional<StoredConfirmation> confirmation;
  std::vector<ToolStep> steps;    // what came of findings
  std::vector<ModelCall> calls;   // questions to models
  std::vector<SearchNode> nodes;  // of the search, rebuilt; empty where its kind is not known here
  double run_seconds = 0;
};

// Opens the store read-only; the run may be live.
Result<RunView> load_run_view(const std::string& directory);

// What the run comes to. Pointers are into the view.
struct Story {
  const StoredCandidate* start = nullptr;
  const StoredCandidate* best = nullptr;  // confirmed winner, else the fastest correct so far
  bool confirmed = false;
  double speedup = 1, low = 1, high = 1;  // over the start
  double start_us = 0, best_us = 0;       // when they were evaluated
  // In the fresh processes of the confirmation, where there was one; else as above.
  double final_start_us = 0, final_us = 0;
  // Of every correct candidate over the start, by ratios that were measured turn by turn
  // (run/store/comparable.h); not confirmed.
  std::map<std::int64_t, SpeedUp> speedups;
  double speedup_of(std::int64_t id) const {  // 0: not known
    const auto found = speedups.find(id);
    return found == speedups.end() ? 0 : found->second.ratio;
  }
  LoadSummary load;     // of the machine while candidates were timed
  double fraction = 0;  // of the measured ceiling, best
  double start_fraction = 0;
  int evaluated = 0, failed = 0;
  std::map<std::string, int> outcomes;       // by outcome_name
  std::vector<const StoredCandidate*> path;  // from the start to the best
  std::map<std::int64_t, const StoredCandidate*> by_id;
};
Story tell(const RunView& view);

// One sentence: what came out, with interval and share of the ceiling.
std::string verdict(const RunView& view, const Story& story);
// Who wrote the structure, who chose the numbers.
std::string credit(const Story& story);
// "7.42x", "+3.1 %"
std::string speedup_text(double ratio);
std::string percent_text(double fraction);

std::string render_html(const RunView& view);
std::string render_text(const RunView& view);
std::string render_json(const RunView& view);

}  // namespace kernelpro
