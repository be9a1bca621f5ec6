// SPDX-License-Identifier: Apache-2.0
// What a writer of kernels is told: the templates of prompts/ filled in. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/proposal.h"
#include "write/prompt/prompts.h"

namespace kernelpro {

// "cpp", "cu" or "py".
std::string source_extension(Language language);

// What a request says, by the names that templates use; the rules are filled in already.
PromptFields prompt_fields(const ProposalRequest& request, const Prompts& prompts);

// For a person or an agent; `number` names the request folder.
std::string exchange_prompt(const ProposalRequest& request, const std::string& number,
                            const Prompts& prompts);

// What stays the same for all questions of a run: what models get as their system text. `library`:
// what is said about code to look things up in; "" = nothing.
std::string task_prompt(const PromptFields& fields, const Prompts& prompts,
                        const std::string& library);

// Parts of it: a module's source with its tensors ("" for other tasks), and the precision owed.
std::string definition_text(const Task& task);
std::string contract_text(const Task& task);

// What came of a candidate, for the one who wrote it: outcome, speed against the start, diagnosis.
std::string result_text(const Known& known, const std::vector<const Known*>& history,
                        Feedback feedback);
// Why a candidate failed, for the one who repairs it. Markdown.
std::string failure_text(const Outcome& outcome);

// `text` as a fenced block, whatever backticks it holds. `language`: "cpp", "" ...
std::string block_of(const std::string& text, std::string_view language);

}  // namespace kernelpro
