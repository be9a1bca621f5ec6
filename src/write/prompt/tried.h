// SPDX-License-Identifier: Apache-2.0
// What a run has tried so far, for the writer of its next candidate. Pure.
#pragma once

#include <string>

#include "core/proposal/proposal.h"

namespace kernelpro {

// One line for each source at its fastest setting: the idea, then the time and the gain that was
// measured in turn, or the failure's first error. Oldest first; the sources that are least related
// to the parent are left out beyond 40 lines, and the first line counts them.
std::string tried_text(const ProposalRequest& request);

// A candidate's time and its gain: "40.0 us, 2.5x the start, 1.02x candidate 7 (1.01 to 1.03)".
// Every time is on one scale (comparable_us). REQUIRES: it is correct.
std::string speed_text(const Known& known, const ProposalRequest& request);

}  // namespace kernelpro
