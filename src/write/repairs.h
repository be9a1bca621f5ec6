// SPDX-License-Identifier: Apache-2.0
// Which failed candidates are worth a repair. Pure.
#pragma once

#include "core/proposal/proposal.h"

namespace kernelpro {

// The time that a failed candidate promises, microseconds: its parent's over the likely gain of the
// finding that it answers, and never below the speed of light. 0: its parent has no time.
double promised_us(const Known& failed, const ProposalRequest& request);

// Those that promise to be faster than the best, the one that promises most first; one whose
// parent failed too comes first, since nothing else may be known.
History worth_repairing(const History& failed, const ProposalRequest& request);

}  // namespace kernelpro
