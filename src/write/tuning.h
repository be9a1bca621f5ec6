// SPDX-License-Identifier: Apache-2.0
// Tuning of the sources that writers give: a source with uncertain numbers is worth its fastest
// setting, not its first one. Any writer uses it between its ideas. A pure function of the request,
// so that a resumed run continues as the first would have.
#pragma once

#include "base/error.h"
#include "core/proposal/proposer.h"

namespace kernelpro {

// Settings that are tried of one source, its first included: `each` of a source within reach of the
// best, twice as many of the best itself, a quarter of any other.
int tuning_budget(const ProposalRequest& request, const Known& fastest, int each);

// Which sources are tuned: those that a writer gave, or also the request's parent, whoever wrote
// it.
enum class Tuned { kWritten, kWrittenAndParent };

// Asks the tuner for the next settings of a source that has had fewer than its budget, the fastest
// source first; in the last evaluations the best alone. Returns how many were given, at most
// `request.wanted`; 0: every source is tuned.
Result<int> tune_written(const ProposalRequest& request, int each, Tuned which, Proposer& tuner,
                         const WriterSink& give);

}  // namespace kernelpro
