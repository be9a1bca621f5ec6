// SPDX-License-Identifier: Apache-2.0
// What a writer answered, a person or a model, becomes one source. Pure; any bytes may come in.
#pragma once

#include <string>

#include "base/error.h"
#include "core/candidate.h"

namespace kernelpro {

inline constexpr std::size_t kMaxReplyBytes = 4 << 20;

// The source in a reply: the reply itself, or its only fenced block that defines an entry (`launch`
// or KP_LAUNCH; for Python `ModelNew`), with line ends as "\n". Fails with kBadInput, with what to
// write instead: too large, no UTF-8 text, nothing, no code, sentences among code, several kernels,
// cut off in a block.
Result<std::string> source_of_reply(const std::string& reply, Language language);

// "one sentence" of a first line "// idea: one sentence" (or "# idea: "); "" = there is none.
std::string idea_of(const std::string& source);

}  // namespace kernelpro
