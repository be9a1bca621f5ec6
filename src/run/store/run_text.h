// SPDX-License-Identifier: Apache-2.0
// A run as text: JSON lines that a diff can show and that hold everything a store does, so that
// Store::open reads them like a run's folder. docs/run-store.md lists the members. Pure.
#pragma once

#include <string>

#include "base/error.h"
#include "run/store/records.h"

namespace kernelpro {

// The run, its candidates by id, the questions to models, the confirmation: one on each line.
// `written`: only candidates that a writer was asked for, which is data and no run.
std::string run_to_text(const StoredRun& run, bool written = false);

// Any bytes. Fails with kStore, naming the line; `name` is the file's.
Result<StoredRun> run_from_text(const std::string& text, const std::string& name);

}  // namespace kernelpro
