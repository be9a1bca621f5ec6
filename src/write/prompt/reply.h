// SPDX-License-Identifier: Apache-2.0
// Extracts one source from the answer of a writer, person or model. Pure; accepts any bytes.
#pragma once

#include <optional>
#include <string>

#include "base/error.h"
#include "core/candidate/candidate.h"
#include "core/finding/finding.h"

namespace kernelpro {

inline constexpr std::size_t kMaxReplyBytes = 4 << 20;

// The source in a reply: the reply itself, or its only fenced block that defines an entry of the
// language, with line ends as "\n". Fails with kBadInput and what to write instead: too large, not
// UTF-8 text, empty, no code, sentences among code, several kernels, cut off inside a block.
Result<std::string> source_of_reply(const std::string& reply, Language language);

// "one sentence" from a first line "// idea: one sentence" (or "# idea: "); "" = there is none.
std::string idea_of(const std::string& source);

// A finding that a text names ("tool: tag", with any decoration), if the diagnosis has it; without
// a tag its first prescription. Unknown names are ignored.
FindingRef answer_of(const std::string& text, const Diagnosis& offered);

// The finding that a source itself names among its first lines: "// answers: TOOL[, tag]" (or
// "# answers: "); none if the diagnosis lacks it. nullopt: the source does not say.
std::optional<FindingRef> named_answer(const std::string& source, const Diagnosis& offered);
// Whether a diagnosis has one finding to follow: then a change that does not say answers that one.
bool offers_one(const Diagnosis& diagnosis);

}  // namespace kernelpro
