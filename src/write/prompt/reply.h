// SPDX-License-Identifier: Apache-2.0
// Extracts one source from the answer of a writer, person or model. Pure; accepts any bytes.
#pragma once

#include <string>

#include "base/error.h"
#include "core/candidate.h"

namespace kernelpro {

inline constexpr std::size_t kMaxReplyBytes = 4 << 20;

// The source in a reply: the reply itself, or its only fenced block that defines an entry of the
// language, with line ends as "\n". Fails with kBadInput and what to write instead: too large, not
// UTF-8 text, empty, no code, sentences among code, several kernels, cut off inside a block.
Result<std::string> source_of_reply(const std::string& reply, Language language);

// "one sentence" from a first line "// idea: one sentence" (or "# idea: "); "" = there is none.
std::string idea_of(const std::string& source);

}  // namespace kernelpro
