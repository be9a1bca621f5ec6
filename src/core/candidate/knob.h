// SPDX-License-Identifier: Apache-2.0
// A tunable constant, and the comments in a source that declare it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kernelpro {

struct Knob {
  std::string name;
  std::vector<std::string> values;  // at least one; single tokens, no duplicates
  std::vector<std::string> tags;
  int line = 0;  // 1-based, in the source
};

// A line that holds only a comment starting with a given word, such as "@knob".
struct Annotation {
  std::string text;  // the text after the word
  int line = 0;      // 1-based
};
std::vector<Annotation> annotations(std::string_view source, std::string_view word);

}  // namespace kernelpro
