// SPDX-License-Identifier: Apache-2.0
// What a prompt begins with: where the parent stands, what is left to win and to spend, and the
// best source besides the parent. Pure.
#pragma once

#include <string>

#include "core/proposal/proposal.h"

namespace kernelpro {

// The parent's result, what the speed of light leaves, the evaluations that remain, the best so
// far. Markdown.
std::string standing_text(const ProposalRequest& request);

// Whether the best is another source than the parent, so that a writer has to see it, too.
bool best_is_another(const ProposalRequest& request);
// Whether its source is shown. Not with `memory` off, nor if it is the task's module, which
// stands in the prompt as the definition.
bool shows_best(const ProposalRequest& request);

// The best source with its heading; "" when it is not shown.
std::string best_text(const ProposalRequest& request);

// How much may change: one thing near the speed of light; elsewhere what the account shows, too,
// and everything where the parent is far from it.
std::string scope_text(const ProposalRequest& request);

}  // namespace kernelpro
