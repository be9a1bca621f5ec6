// SPDX-License-Identifier: Apache-2.0
// The search loop, with all of its parts injected.
#pragma once

#include <string>
#include <vector>

#include "run/parts.h"
#include "run/result.h"

namespace kernelpro {

// Runs until a stopper fires, an interruption, or a machine error; everything evaluated by then is
// stored.
Result<RunResult> run_loop(const LoopParts& parts);

// Writes `count` requests into `folder` without measuring anything, and returns their folders;
// `station` and `proposer` of `parts` may be null. Parents are the ones the search would expand;
// requests for the same parent each address a different finding. Fails with kBadInput when nothing
// was evaluated yet.
Result<std::vector<std::string>> write_requests(const LoopParts& parts, const std::string& folder,
                                                int count);

// Has `proposer` write until the run has up to `count` more kernels that wait for their
// measurement, and returns how many it has been given; `station` may be null. Fails with kBadInput
// when nothing was evaluated yet.
Result<int> write_kernels(const LoopParts& parts, int count);

}  // namespace kernelpro
