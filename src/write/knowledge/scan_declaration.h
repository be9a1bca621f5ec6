// SPDX-License-Identifier: Apache-2.0
// Classifies the declaration in front of a brace or semicolon. Pure functions, any thread.
#pragma once

#include <string>
#include <string_view>

namespace kernelpro {

struct Declaration {
  enum What { kNamespace, kType, kFunction, kOther };
  What what = kOther;
  std::string name;
  bool enumeration = false;
  bool alias = false;
};

// `head`: the text of a declaration up to `end`, a '{' or ';'. Accepts any bytes.
Declaration read_declaration(std::string_view head, char end);
// The identifier that starts at `at`, or "".
std::string_view identifier_at(std::string_view text, std::size_t at);

}  // namespace kernelpro
