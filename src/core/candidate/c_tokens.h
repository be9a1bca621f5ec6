// SPDX-License-Identifier: Apache-2.0
// The tokens of C++ and CUDA sources. Safe on any bytes.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace kernelpro {

struct CToken {
  enum class Kind { kWord, kNumber, kText, kSign, kDirective };
  Kind kind = Kind::kSign;
  std::string_view text;  // into the source
  std::size_t at = 0;     // offset in the source
};

// Omits comments; a preprocessor line, with its continuations, is one token.
std::vector<CToken> c_tokens(std::string_view source);

// The tokens without directives and without the branches of conditionals that are not taken: the
// first branch is kept, of "#if 0" the second.
std::vector<CToken> c_code_tokens(std::string_view source);

// Replaces every whole word `from`.
std::string replace_word(std::string_view source, std::string_view from, std::string_view to);

}  // namespace kernelpro
