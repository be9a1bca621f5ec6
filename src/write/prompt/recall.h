// SPDX-License-Identifier: Apache-2.0
// What is remembered for one question: facts of earlier runs and of this one (core/fact.h), and the
// run's own candidates, chosen by what they have to do with the parent. The same question gets the
// same answer. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "core/fact.h"
#include "core/machine.h"
#include "core/proposal.h"

namespace kernelpro {

// How much a fact has to do with a question: the sum of what holds. Chosen so that the task comes
// before the machine and both before what happened; no figure here was fitted.
struct RecallWeights {
  double same_task = 6;    // equal content
  double same_name = 4.5;  // another version or size of it
  double family = 3;       // times family_likeness
  double same_machine = 2;
  double same_arch = 1;  // other architectures are asked only when none is like this one
  double same_finding = 2;
  double same_tag = 0.5;      // of that finding
  double same_bound = 0.5;    // the parents were bound by the same
  double gain = 1.5;          // times log2 of the speed-up, 1 at most
  double failure = 0.5;       // it failed, or was slower
  double failed_again = 0.5;  // times how often more, 3 at most, where nothing like it was faster
};

struct RecallLimits {
  std::size_t lines = 12;
  std::size_t bytes = 4000;
  std::size_t names = 12;  // of features that compiled
  std::size_t errors = 3;  // with their cure
};

// By the rule of verdicts: the lower end of the interval, where there is one, is above 1.005.
bool was_faster(const Fact& fact);

// A fact by itself, on one line.
std::string fact_text(const Fact& fact);

// Those that a run on this task and machine may ask about, at most `most`, in the order in which
// they were given. Facts of other architectures come only where there is none of this one.
std::vector<Fact> facts_for(const std::vector<Fact>& all, const Task& task, TargetKind target,
                            const Machine& machine, std::size_t most);

// "What earlier runs taught" for a prompt, with its heading; "" when there is nothing.
std::string memory_text(const ProposalRequest& request, const RecallLimits& limits = {});

// What cured failures like this one, in this run or earlier ones, with its heading; "" when nothing
// like it was cured. `failure`: as failure_text (write/prompt/prompt.h) tells it.
std::string cures_text(const ProposalRequest& request, const std::string& failure,
                       const RecallLimits& limits = {});

// At most `most` of the history, in its order: the start, the best, the parent with its ancestors,
// its children and its siblings, what answers one of its findings; the latest of the rest.
std::vector<const Known*> worth_telling(const ProposalRequest& request, std::size_t most);

}  // namespace kernelpro
