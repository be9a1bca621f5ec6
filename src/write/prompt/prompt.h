// SPDX-License-Identifier: Apache-2.0
// Builds the prompts for writers of kernels from the templates in prompts/. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/proposal/proposal.h"
#include "write/prompt/outcome_text.h"
#include "write/prompt/prompts.h"

namespace kernelpro {

// The contents of a request by template field name; the rules are already filled in.
PromptFields prompt_fields(const ProposalRequest& request, const Prompts& prompts);

// For a person or an agent; `number` names the request folder.
std::string exchange_prompt(const ProposalRequest& request, const std::string& number,
                            const Prompts& prompts);

// The part that is the same for all questions of a run: the models' system text. `library`: text
// about the code that can be looked up; "" = none.
std::string task_prompt(const PromptFields& fields, const Prompts& prompts,
                        const std::string& library);

// Parts of it: what is computed (a module's source with its tensors, or the task's reference), and
// the required precision.
std::string definition_text(const Task& task, TargetKind target);
std::string contract_text(const Task& task);

// The result of a candidate of the history, for its writer: outcome, speed, diagnosis.
std::string result_text(const Known& known, const ProposalRequest& request);

}  // namespace kernelpro
