// SPDX-License-Identifier: Apache-2.0
// A question as the index understands it: concepts, each with the forms in which a text may have
// it. Pure, any thread.
#pragma once

#include <string>
#include <vector>

namespace kernelpro {

// A word of the index, or several side by side.
struct Form {
  std::vector<std::string> words;
  double weight = 1;  // of a hit, against the concept's own words
};

struct Concept {
  std::vector<Form> forms;  // the first is what was asked
  double weight = 1;
};

struct Question {
  std::vector<Concept> concepts;
  std::vector<std::string> identifiers;  // as written: compound ones and those with capitals
};

// At most 24 concepts; what is beyond them is not read.
Question read_question(const std::string& text);

}  // namespace kernelpro
