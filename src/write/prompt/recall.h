// SPDX-License-Identifier: Apache-2.0
// Memory for one question: facts of earlier runs and of this one (core/proposal/fact.h), and the
// run's own candidates, chosen by their relevance to the parent. The same question gets the same
// answer. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "core/machine/machine.h"
#include "core/proposal/fact.h"
#include "core/proposal/proposal.h"

namespace kernelpro {

// Relevance of a fact to a question: the sum of the weights that apply. Chosen so that the task
// outweighs the machine, and both outweigh the result; no figure here was fitted.
struct RecallWeights {
  double same_task = 6;    // equal content
  double same_name = 4.5;  // another version or size of the task
  double family = 3;       // times family_likeness
  double same_machine = 2;
  double same_arch = 1;  // other architectures only when there is no fact of this one
  double same_finding = 2;
  double same_tag = 0.5;      // for that finding
  double same_bound = 0.5;    // the parents had the same bound
  double gain = 1.5;          // times log2 of the speed-up, capped at 1
  double failure = 0.5;       // it failed, or was slower
  double failed_again = 0.5;  // times further failures, capped at 3, if nothing like it was faster
};

struct RecallLimits {
  std::size_t lines = 12;
  std::size_t bytes = 4000;
  std::size_t names = 12;  // of features that compiled
  std::size_t errors = 3;  // with their cures
};

// By the verdicts' rule: the lower end of the interval, if there is one, is above 1.005.
bool was_faster(const Fact& fact);

// A single fact, on one line.
std::string fact_text(const Fact& fact);

// Facts available to a run on this task and machine, at most `most`, in the given order. Includes
// facts of other architectures only if there are none of this one.
std::vector<Fact> facts_for(const std::vector<Fact>& all, const Task& task, TargetKind target,
                            const Machine& machine, std::size_t most);

// "What earlier runs taught" for a prompt, with its heading; "" when there is nothing.
std::string memory_text(const ProposalRequest& request, const RecallLimits& limits = {});

// What cured similar failures, in this run or earlier ones, with its heading; "" when there is no
// such cure. `failure`: text from failure_text (write/prompt/outcome_text.h).
std::string cures_text(const ProposalRequest& request, const std::string& failure,
                       const RecallLimits& limits = {});

// At most `most` of the history, in its order: the baseline, the best, the parent with its
// ancestors, children and siblings, answers to its findings; then the latest of the rest.
History worth_telling(const ProposalRequest& request, std::size_t most);

}  // namespace kernelpro
