// SPDX-License-Identifier: Apache-2.0
// The parts of a prompt and the length that each may not pass: a part that grows with the run must
// not push out the others. The parent's source, `task.h` and the rules are whole whatever
// their length. Pure.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "write/prompt/prompts.h"

namespace kernelpro {

struct PartLimit {
  std::string_view field;  // of the templates
  std::size_t bytes;
};
std::span<const PartLimit> part_limits();

// At most about `most` bytes: whole lines, with a closed fence, and a line that says what is left
// out.
std::string shortened_part(const std::string& text, std::size_t most);

// Shortens every field that is too long.
void shorten_parts(PromptFields* fields);

}  // namespace kernelpro
