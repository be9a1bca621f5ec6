// SPDX-License-Identifier: Apache-2.0
// The field's words: what goes by several names, and what people say who do not know these. Pure,
// any thread.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

namespace kernelpro {

using Phrase = std::vector<std::string>;

struct SynonymGroup {
  std::vector<Phrase> names;  // stems side by side, as the index has them
  std::vector<Phrase> said;   // words as spoken_word gives them, near each other in any order
};

const std::vector<SynonymGroup>& synonym_groups();

// What a lower-case word is in the phrases that are said: its stem, or the first of the words that
// count as one with it ("several", "many"); "" for articles and the like.
std::string spoken_word(const std::string& word);

// How much such a word tells: the fewer groups have it, the more. 0 for a word that none has.
double spoken_weight(const std::string& spoken);

}  // namespace kernelpro
