// SPDX-License-Identifier: Apache-2.0
// A tunable constant, and the comments that declare such things in a source.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kernelpro {

struct Knob {
  std::string name;
  std::vector<std::string> values;  // at least one; each a single token, none twice
  std::vector<std::string> tags;
  int line = 0;  // 1-based, in the source
};

// Lines of a source that hold nothing but a comment which begins with a word, such as "@knob".
struct Annotation {
  std::string text;  // what follows the word
  int line = 0;      // 1-based
};
std::vector<Annotation> annotations(std::string_view source, std::string_view word);

}  // namespace kernelpro
