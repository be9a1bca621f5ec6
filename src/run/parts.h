// SPDX-License-Identifier: Apache-2.0
// The parts of a search loop (run/loop.h), all of them injected.
#pragma once

#include <atomic>
#include <vector>

#include "base/mailbox.h"
#include "diagnose/record.h"
#include "measure/station/station.h"
#include "run/result.h"
#include "run/store/settings.h"
#include "run/store/store.h"
#include "search/search.h"
#include "write/proposer.h"

namespace kernelpro {

struct LoopParts {
  const Task* task = nullptr;
  const RunSettings* settings = nullptr;
  Store* store = nullptr;               // open for writing; may hold a run to continue
  Station* station = nullptr;           // prepared
  std::vector<Station*> others;         // further ones; may be empty
  std::vector<Readiness> ready;         // when each of them is prepared
  const StationMaker* maker = nullptr;  // for held-out cases; null: they are not measured
  const Machine* machine = nullptr;     // the run's machine; required if `station` is null
  Proposer* proposer = nullptr;
  // This thread's mailbox, and a flag that stops slow writers (WriterStart::over); null when
  // nothing is measured.
  Mailbox* mailbox = nullptr;
  std::atomic<bool>* over = nullptr;
  SearchMaker search;            // required
  ToolRecord record;             // as the run began
  std::vector<Fact> facts;       // of earlier runs, as the run began
  std::vector<Candidate> seeds;  // evaluated right after the start, if the run has not begun
  Observer observer;             // may be empty
  // Measure the proposer's candidates whatever the search thinks of their parents: for replies that
  // are already there, or a sweep.
  bool only_replies = false;
  bool confirm = true;  // the best, in fresh processes, at the end
  // The loop's own overhead in ms, per evaluation of this sitting; may be null.
  std::vector<double>* own_ms = nullptr;
};

}  // namespace kernelpro
