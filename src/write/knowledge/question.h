// SPDX-License-Identifier: Apache-2.0
// A parsed question: concepts, each with the forms in which a text may express it. Pure, any
// thread.
#pragma once

#include <string>
#include <vector>

namespace kernelpro {

// A word of the index, or several adjacent ones.
struct Form {
  std::vector<std::string> words;
  double weight = 1;  // of a hit, relative to the concept's own words
};

struct Concept {
  std::vector<Form> forms;  // the first is the one in the question
  double weight = 1;
};

struct Question {
  std::vector<Concept> concepts;
  std::vector<std::string> identifiers;  // as written: compound or with capitals
};

// At most 24 concepts; the rest is ignored.
Question read_question(const std::string& text);

}  // namespace kernelpro
