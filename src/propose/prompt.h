// SPDX-License-Identifier: Apache-2.0
// What a writer of kernels is told (prompts/exchange.md filled in). Pure.
#pragma once

#include <string>

#include "core/proposal.h"

namespace kernelpro {

// "cpp", "cu" or "py".
std::string source_extension(Language language);

// `number` names the request folder.
std::string exchange_prompt(const ProposalRequest& request, const std::string& number);

// Parts of it: a module's source with its tensors ("" for other tasks), and the precision owed.
std::string definition_text(const Task& task);
std::string contract_text(const Task& task);

// What came of a candidate, for the one who wrote it: outcome, speed against the start, diagnosis.
std::string result_text(const Known& known, const std::vector<const Known*>& history);

}  // namespace kernelpro
