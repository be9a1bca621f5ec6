// SPDX-License-Identifier: Apache-2.0
#include "knowledge/synonyms.h"

#include "base/text.h"
#include "embedded/knowledge_synonyms.h"
#include "knowledge/tokens.h"

namespace kernelpro {

namespace {

Phrase phrase_of(const std::string& text) {
  Phrase phrase;
  for (const std::string& word : words(text)) {
    if (is_identifier(word) && !is_stop_word(word)) phrase.push_back(stem(word));
  }
  return phrase;
}

// The file's own few forms: a row is one line, ["phrase", "phrase"],
std::vector<std::vector<Phrase>> read() {
  std::vector<std::vector<Phrase>> groups;
  for (const std::string& line : lines(embedded::knowledge_synonyms)) {
    if (trim(line).substr(0, 2) != "[\"") continue;
    std::vector<Phrase> group;
    const std::vector<std::string> cells = split(line, '"');
    for (std::size_t i = 1; i < cells.size(); i += 2) {
      Phrase phrase = phrase_of(cells[i]);
      if (!phrase.empty()) group.push_back(std::move(phrase));
    }
    groups.push_back(std::move(group));
  }
  return groups;
}

}  // namespace

const std::vector<std::vector<Phrase>>& synonym_groups() {
  static const std::vector<std::vector<Phrase>> kGroups = read();
  return kGroups;
}

}  // namespace kernelpro
