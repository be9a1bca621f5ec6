// SPDX-License-Identifier: Apache-2.0
// The proposer that a run's settings name, wired to the run: its folder, its store, its observer.
#pragma once

#include <memory>
#include <string>

#include "propose/proposer.h"
#include "run/run.h"
#include "run/store.h"

namespace kernelpro {

std::string exchange_folder(const std::string& directory);

// What can be refused before a run has a folder: a model's name or key, a price, a prompt.
Result<void> check_writer(const RunSettings& settings);
// `store` keeps each question to a model, and has those of earlier sittings. It outlives the
// proposer.
Result<std::unique_ptr<Proposer>> make_writer(const RunSettings& settings, Store* store,
                                              const Observer& observer);
// For what only picks up replies.
Result<std::unique_ptr<Proposer>> make_collector(const RunSettings& settings);

}  // namespace kernelpro
