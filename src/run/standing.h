// SPDX-License-Identifier: Apache-2.0
// How a run stands, as its ledger has it: what stoppers decide on, displays show and, before the
// confirmation, the result says. Pure.
#pragma once

#include <memory>

#include "core/machine/machine.h"
#include "run/result.h"
#include "run/store/ledger.h"
#include "run/store/records.h"
#include "run/store/settings.h"
#include "search/stoppers.h"

namespace kernelpro {

// The stoppers that the settings ask for; the first to fire ends the run.
std::unique_ptr<Stopper> make_stopper(const RunSettings& settings);

// All of it but the time, which the ledger does not know. `machine`: with the ceilings known now.
Standing standing_of(const Ledger& ledger, const Machine& machine);
// All of it but the event and the time. `known`: the candidate that it is about; may be null.
Progress progress_of(const Ledger& ledger, const Machine& machine, const Known* known);
// The best so far, versus the baseline.
RunResult unconfirmed_result(const Ledger& ledger);
// Puts the confirmed winner into a result. `confirmed`: in fresh processes, versus the baseline
// unless it is the winner itself.
void set_confirmed(const Known& winner, const Known& baseline, const Evaluation& confirmed,
                   RunResult* result);

// The same for a confirmation that the store has, with its held-out cases. False, and nothing
// changed: its candidates are not in the ledger.
bool take_confirmation(const Ledger& ledger, const StoredConfirmation& stored, RunResult* result);

}  // namespace kernelpro
