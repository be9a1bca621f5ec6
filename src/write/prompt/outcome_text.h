// SPDX-License-Identifier: Apache-2.0
// Outcomes as prompts tell them. Pure.
#pragma once

#include <cstddef>
#include <string>

#include "core/evaluation/evaluation.h"

namespace kernelpro {

// An outcome as a sentence that ends with `end`. Lines after the first, which may be a candidate's
// own words, follow in a block. Each part has about `most` bytes. Markdown, without a last line
// end.
std::string outcome_text(const Outcome& outcome, const std::string& end, std::size_t most);
// Why a candidate failed, for the model that repairs it. Markdown.
std::string failure_text(const Outcome& outcome);

}  // namespace kernelpro
