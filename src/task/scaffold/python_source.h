// SPDX-License-Identifier: Apache-2.0
// Reads as much of Python sources as a scaffold needs: top-level statements and string literals.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kernelpro {

// A statement that starts in the first column, including its body.
struct PythonBlock {
  std::string text;
  std::string keyword;  // "import", "from", "class", "def", "if", "" for others
  std::string name;     // of a class, function or assigned variable; "" for others
};
std::vector<PythonBlock> python_blocks(std::string_view source);

// Contents of all string literals, in order (non-raw ones unescaped).
std::vector<std::string> python_strings(std::string_view source);

}  // namespace kernelpro
