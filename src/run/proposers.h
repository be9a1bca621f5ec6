// SPDX-License-Identifier: Apache-2.0
// One row per proposer, with what the loop, the commands and the report need. To add one: a file in
// src/write/ and a row in proposers.cc.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "core/proposal/proposal.h"
#include "run/store/settings.h"
#include "write/proposer.h"

namespace kernelpro {

// Candidates of a coding agent (run/sitting.h).
inline constexpr const char* kMcpName = "mcp";

// What a proposer gets of the run when it is made.
struct WriterStart {
  std::vector<ModelCall> calls;             // of earlier sittings
  std::vector<ExchangeRequest> requests;    // likewise
  const std::atomic<bool>* over = nullptr;  // no more candidates are wanted; outlives the proposer
};

struct ProposerRow {
  std::string_view name;
  std::string_view summary;  // for help
  // A reply takes seconds to hours: runs on its own thread while measurements continue.
  bool slow = false;
  bool writes_sources = false;  // else it moves knobs or repeats recorded sources
  bool needs_knobs = false;     // in the starting kernel
  bool asks_models = false;     // named in settings.roles
  // Measures every setting; no search is used.
  bool exhaustive = false;
  bool replays = false;               // settings.replay_from names a run
  bool selectable = true;             // with --proposer
  int batch_cpu = 4, batch_cuda = 4;  // candidates per request
  // What to do when its run tried nothing; {run} stands for the run's folder.
  std::string_view when_nothing;
  // For the report: who wrote a winner's source, and who chose its numbers if the source is the
  // given one; "" = the proposer's name in quotes.
  std::string_view wrote;
  std::string_view chose = "";
  // Rejects what can be rejected before a run has a folder: a model's name or key, a price, a
  // prompt.
  Result<void> (*check)(const RunSettings& settings);
  Result<std::unique_ptr<Proposer>> (*make)(const RunSettings& settings, const WriterStart& start);
};

std::string proposer_names();  // that may be selected: "tuner|sweep|..."
// Fails with kBadInput and lists the known names.
Result<const ProposerRow*> find_proposer(std::string_view name);
// The row for a run; for a proposer unknown to this version, a row with no capabilities.
const ProposerRow& proposer_of(const RunSettings& settings);

// The first row with a property: proposer_that(&ProposerRow::replays).
const ProposerRow& proposer_that(bool ProposerRow::*does);

// For callers that only collect replies.
Result<std::unique_ptr<Proposer>> make_collector(const RunSettings& settings,
                                                 const WriterStart& start);
}  // namespace kernelpro
