// SPDX-License-Identifier: Apache-2.0
// Reads Python sources as far as a scaffold needs: statements at the top level and string literals.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kernelpro {

// A statement that begins in the first column, with everything that belongs to it.
struct PythonBlock {
  std::string text;
  std::string keyword;  // "import", "from", "class", "def", "if", "" for others
  std::string name;     // of a class, function, or the variable that is assigned; "" for others
};
std::vector<PythonBlock> python_blocks(std::string_view source);

// The contents of all string literals, in order (escapes undone for plain ones).
std::vector<std::string> python_strings(std::string_view source);

}  // namespace kernelpro
