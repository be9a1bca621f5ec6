// SPDX-License-Identifier: Apache-2.0
// How an evaluation becomes a fact (core/fact.h), and what a run has to do with facts. Pure but for
// what reads a store or the user's file.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/fact.h"
#include "core/machine.h"
#include "core/proposal.h"
#include "run/result.h"
#include "run/store/ledger.h"
#include "run/store/settings.h"
#include "run/store/store.h"

namespace kernelpro {

// What all facts of a run have in common.
struct FactFrame {
  Fact common;
  FactFrame() = default;
  FactFrame(const Task& task, TargetKind target, const Machine& machine);
};

// What `child` taught; nullopt for a candidate without an evaluated parent. `ledger` has the parent
// and what the child may repair; the child need not be in it yet.
std::optional<Fact> fact_of(const FactFrame& frame, const Ledger& ledger, const Known& child);

// "- " the lines that only `before` has and "+ " those that only `after` has, a few of each,
// clipped; what their first comment says of an idea is left out.
std::string changed_lines(const std::string& before, const std::string& after);

// Is what this run learns worth keeping for others? A sweep moves numbers without an idea, and a
// replay repeats what another run has told.
bool leaves_facts(const RunSettings& settings);

// What the user's memory holds for a run that is to begin: kept with the run, so that a resumed one
// has the same. None where the settings say so. `note`: what a person should know of the file, one
// sentence, else "".
std::vector<Fact> facts_to_begin_with(const Task& task, const RunSettings& settings,
                                      const Machine& machine, std::string* note);

// The facts of a stored run, in the order of evaluation.
Result<std::vector<Fact>> facts_of_run(const Store& store);

}  // namespace kernelpro
