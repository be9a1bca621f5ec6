// SPDX-License-Identifier: Apache-2.0
// What the words before a brace or semicolon declare. Pure functions, any thread.
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

// `head`: the text of a declaration up to `end`, a '{' or ';'. Takes any bytes.
Declaration read_declaration(std::string_view head, char end);
// The identifier that begins at `at`, or "".
std::string_view identifier_at(std::string_view text, std::size_t at);

}  // namespace kernelpro
