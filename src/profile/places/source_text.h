// SPDX-License-Identifier: Apache-2.0
// The tokens of a C++ or CUDA source, each with its line: enough to find declarations, loops and
// launches by their look, without a compiler. Comments, strings and most of the preprocessor are
// left out. Pure; any bytes are safe.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

namespace kernelpro {

struct SourceToken {
  enum class Kind { kName, kNumber, kMark, kDefine, kUnroll } kind = Kind::kMark;
  std::string_view text;  // a view of the source; of kDefine: the macro's name
  int line = 1;
};

// A mark is one character, or "<<<", ">>>", "::", "->", "==", "<=", ">=", "!=", "+=", "-=", "*=".
std::vector<SourceToken> source_tokens(std::string_view source);

// Whether the token at `k` is this name or mark; false behind the last one and for directives.
bool is_token(const std::vector<SourceToken>& tokens, std::size_t k, std::string_view text);
// The token that closes the bracket at `open`; the last one if none does, 0 without tokens.
std::size_t closing_token(const std::vector<SourceToken>& tokens, std::size_t open);

}  // namespace kernelpro
