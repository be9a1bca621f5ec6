// SPDX-License-Identifier: Apache-2.0
// The field's vocabulary: concepts with several names, and how people describe them without knowing
// these names. Pure, any thread.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

namespace kernelpro {

using Phrase = std::vector<std::string>;

struct SynonymGroup {
  std::vector<Phrase> names;  // adjacent stems, as in the index
  std::vector<Phrase> said;   // words as from spoken_word, near each other in any order
};

const std::vector<SynonymGroup>& synonym_groups();

// Maps a lower-case word to its form in `said` phrases: its stem, or the first of the words treated
// as the same ("several", "many"); "" for articles and the like.
std::string spoken_word(const std::string& word);

// How specific such a word is: higher when fewer groups have it, 0 when none has.
double spoken_weight(const std::string& spoken);

}  // namespace kernelpro
