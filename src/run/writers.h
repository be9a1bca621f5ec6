// SPDX-License-Identifier: Apache-2.0
// The proposer that a run's settings name, wired to the run: its folder, its store, its observer.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "base/mailbox.h"
#include "propose/proposer.h"
#include "run/run.h"
#include "run/store.h"

namespace kernelpro {

std::string exchange_folder(const std::string& directory);

// What can be refused before a run has a folder: a model's name or key, a price, a prompt.
Result<void> check_writer(const RunSettings& settings);
// Writers that take seconds to hours: asked on a thread of their own, while measurements go on.
bool is_slow(const RunSettings& settings);
// What a writer on another thread has of the run. Store and observer are used on the run's own
// thread alone, which runs the messages of `mailbox`.
struct WriterLinks {
  Store* store = nullptr;  // keeps each question to a model, and has those of earlier sittings
  Observer observer;       // may be empty
  Mailbox* mailbox = nullptr;
  const std::atomic<bool>* over = nullptr;  // nothing more is wanted
};
// What `links` names outlives the proposer.
Result<std::unique_ptr<Proposer>> make_writer(const RunSettings& settings,
                                              const WriterLinks& links);
// For what only picks up replies.
Result<std::unique_ptr<Proposer>> make_collector(const RunSettings& settings,
                                                 const WriterLinks& links);

}  // namespace kernelpro
