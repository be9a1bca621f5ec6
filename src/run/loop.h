// SPDX-License-Identifier: Apache-2.0
// The loop itself, with everything that it introduces to each other handed in.
#pragma once

#include <atomic>
#include <vector>

#include "base/mailbox.h"
#include "diagnose/record.h"
#include "measure/station/target.h"
#include "run/result.h"
#include "run/store/settings.h"
#include "run/store/store.h"
#include "search/search.h"
#include "write/proposer.h"

namespace kernelpro {

struct LoopParts {
  const Task* task = nullptr;
  const RunSettings* settings = nullptr;
  Store* store = nullptr;              // open for writing; may hold a run to go on with
  Target* target = nullptr;            // prepared
  std::vector<Target*> others;         // on further GPUs; may be none
  std::vector<Readiness> ready;        // when each of them is prepared
  const TargetMaker* maker = nullptr;  // for held-out cases; null: they are not measured
  const Machine* machine = nullptr;    // that the run is about; needed where `target` is null
  Proposer* proposer = nullptr;
  // Of this thread, and a flag that ends slow writers (run/writers.h); null where nothing is
  // measured.
  Mailbox* mailbox = nullptr;
  std::atomic<bool>* over = nullptr;
  Search* search = nullptr;      // empty
  ToolRecord record;             // that the run began with
  std::vector<Fact> facts;       // of earlier runs, that it began with
  std::vector<Candidate> seeds;  // evaluated after the start, where the run has not begun
  Observer observer;             // may be empty
  // The proposer's candidates are measured whatever the search thinks of their parents: replies
  // that lie there, or a sweep.
  bool only_replies = false;
  // The loop's own milliseconds for each evaluation of this sitting; may be null.
  std::vector<double>* own_ms = nullptr;
};

// Runs to a stopper, an interruption or an error of the machine; whatever was evaluated is stored
// by then.
Result<RunResult> run_loop(const LoopParts& parts);

// Writes `count` requests into `folder` without measuring anything; `target` and `proposer` of
// `parts` may be null. Parents are what the search would build on; requests for the same parent ask
// to answer one of its findings each. The requests' folders. Fails with kBadInput when nothing was
// evaluated yet.
Result<std::vector<std::string>> write_requests(const LoopParts& parts, const std::string& folder,
                                                int count);

}  // namespace kernelpro
