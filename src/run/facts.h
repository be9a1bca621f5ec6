// SPDX-License-Identifier: Apache-2.0
// Turns evaluations into facts (core/proposal/fact.h), and reads and writes facts for a run. Pure,
// except for functions that read a store or the user's file.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/machine/machine.h"
#include "core/proposal/fact.h"
#include "core/proposal/proposal.h"
#include "run/result.h"
#include "run/store/ledger.h"
#include "run/store/settings.h"
#include "run/store/store.h"

namespace kernelpro {

// The fields that all facts of a run share.
struct FactFrame {
  Fact common;
  FactFrame() = default;
  FactFrame(const Task& task, TargetKind target, const Machine& machine);
};

// The evaluated candidate that a source was made from: the parent that it was asked for on, or the
// best of that time, with which it was measured in turn and which its writer saw too, where clearly
// more of its lines are that one's. Three of four sources that were asked for on another candidate
// than the best are (results/search.md). nullptr: it has no evaluated parent. `ledger`: as fact_of.
KnownPtr made_from(const Ledger& ledger, const Known& child);

// The fact that `child` taught of what it was made from; nullopt for a candidate without an
// evaluated parent. `ledger` holds the parent, the candidate that the child may repair and the one
// that it was measured in turn with, all whole; the child need not be in it yet.
std::optional<Fact> fact_of(const FactFrame& frame, const Ledger& ledger, const Known& child);

// Whether one source mends the other: few of their lines differ. Another kernel is no cure.
bool is_repair(const std::string& before, const std::string& after);

// Lines that only `before` has ("- ") and lines that only `after` has ("+ "), a few of each,
// clipped; without the idea in their first comment.
std::string changed_lines(const std::string& before, const std::string& after);

// Whether the run's facts are worth keeping for others. A sweep moves numbers without an idea, and
// a replay repeats what an earlier run recorded.
bool leaves_facts(const RunSettings& settings);

// The user's facts for a new run; stored with the run, so that a resume sees the same ones. Empty
// when the settings turn facts off. `note`: one sentence to show the user about the file, else "".
std::vector<Fact> facts_to_begin_with(const Task& task, const RunSettings& settings,
                                      const Machine& machine, std::string* note);

// The facts of a stored run, in the order of evaluation; none of a sweep, or of a replay, which
// repeats another run.
Result<std::vector<Fact>> facts_of_run(const Store& store);

}  // namespace kernelpro
