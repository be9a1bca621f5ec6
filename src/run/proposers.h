// SPDX-License-Identifier: Apache-2.0
// Every proposer as a row: what the loop, the commands and the report need to know of it. Adding
// one: its file in src/write/, and its row in proposers.cc.
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/mailbox.h"
#include "run/result.h"
#include "run/store/settings.h"
#include "run/store/store.h"
#include "write/proposer.h"

namespace kernelpro {

// What a proposer on another thread has of the run. Store and observer are used on the run's own
// thread alone, which runs the messages of `mailbox`.
struct WriterLinks {
  Store* store = nullptr;  // keeps each question to a model, and has those of earlier sittings
  Observer observer;       // may be empty
  Mailbox* mailbox = nullptr;
  const std::atomic<bool>* over = nullptr;  // nothing more is wanted
};

struct ProposerRow {
  std::string_view name;
  std::string_view summary;  // for help
  // Takes seconds to hours for a reply: asked on its own thread while measurements go on.
  bool slow = false;
  bool writes_sources = false;  // else it moves knobs, or repeats what was written
  bool needs_knobs = false;     // of the starting kernel
  bool asks_models = false;     // settings.roles say which
  // Measures every setting, whatever the search thinks: none is asked.
  bool exhaustive = false;
  bool replays = false;               // settings.replay_from names a run
  bool selectable = true;             // by --proposer
  int batch_cpu = 4, batch_cuda = 4;  // candidates to ask for at a time
  // What to do when a run of it tried nothing; {run} stands for its folder.
  std::string_view when_nothing;
  // For the report: who wrote a winner's source, and who chose its numbers where the source is the
  // one that was given; "" = its name in quotes.
  std::string_view wrote;
  std::string_view chose = "";
  // What can be refused before a run has a folder: a model's name or key, a price, a prompt.
  Result<void> (*check)(const RunSettings& settings);
  // What `links` names outlives the proposer.
  Result<std::unique_ptr<Proposer>> (*make)(const RunSettings& settings, const WriterLinks& links);
};

std::span<const ProposerRow> proposers();
// Fails with kBadInput, naming those that there are.
Result<const ProposerRow*> find_proposer(std::string_view name);
// The row of a run; of a proposer that this version does not know, one that promises nothing.
const ProposerRow& proposer_of(const RunSettings& settings);

// For what only picks up replies.
Result<std::unique_ptr<Proposer>> make_collector(const RunSettings& settings,
                                                 const WriterLinks& links);
std::string exchange_folder(const std::string& directory);

}  // namespace kernelpro
