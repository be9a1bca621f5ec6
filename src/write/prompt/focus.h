// SPDX-License-Identifier: Apache-2.0
// Which finding the next change is asked to answer. What was promised is compared with what came:
// a cause whose answers brought next to nothing in this run, or all of it, is told, but no longer
// ordered. Pure.
#pragma once

#include <string>
#include <vector>

#include "core/proposal/proposal.h"

namespace kernelpro {

// The parent's findings that a change may answer, as they rank: without stops, without remarks that
// name no cause or promise less than noise, and without those of which was_answered() holds. They
// point into the request.
std::vector<const Finding*> findings_to_answer(const ProposalRequest& request);

// In a run with memory: whether a child of the parent brought most of what the finding promises
// (three quarters, in logarithms), or whether those that followed its tool in this run (one made of
// this parent, or two of any) all brought less than a quarter of what their parents' diagnosis
// promised. Other settings of one source do not count.
bool was_answered(const ProposalRequest& request, const Finding& finding);

// "What its findings brought so far in this run: unfused-kernels promised 1.30x, and brought 0.98x
// and 0.97x.\n"; "" where none was followed.
std::string brought_text(const ProposalRequest& request);

// "Answer the finding ..."
std::string focus_text(const Finding& finding);
// "Use less energy a call, ..."; "" where energy does not count, or the parent's is unknown.
std::string energy_focus_text(const ProposalRequest& request);
// Whether a source made of the parent answers none of its findings: that was the free choice, which
// is asked for before the findings where energy counts.
bool chose_freely(const ProposalRequest& request);

}  // namespace kernelpro
