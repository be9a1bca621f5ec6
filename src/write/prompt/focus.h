// SPDX-License-Identifier: Apache-2.0
// Which finding the next change is asked to answer. What was promised is compared with what came:
// a cause whose answers brought next to nothing in this run is told, but no longer ordered. Pure.
#pragma once

#include <string>
#include <vector>

#include "core/proposal/proposal.h"

namespace kernelpro {

// The parent's findings that a change may answer, as they rank: without stops, without remarks that
// name no cause, and in a run with memory, without those of which brought_little() holds. They
// point into the request.
std::vector<const Finding*> findings_to_answer(const ProposalRequest& request);

// Whether correct candidates of this run followed the tool's finding, and even the best of them
// gained less than a quarter (in logarithms) of what their parents' diagnosis promised.
bool brought_little(const History& history, const std::string& tool);

// "What its findings brought so far in this run: unfused-kernels promised 1.30x, and brought 0.98x
// and 0.97x.\n"; "" where none was followed.
std::string brought_text(const ProposalRequest& request);

// "Answer the finding ..."
std::string focus_text(const Finding& finding);

}  // namespace kernelpro
