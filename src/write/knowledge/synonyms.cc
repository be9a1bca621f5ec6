// SPDX-License-Identifier: Apache-2.0
#include "write/knowledge/synonyms.h"

#include <cmath>
#include <unordered_set>

#include "base/text.h"
#include "embedded/knowledge_synonyms.h"
#include "write/knowledge/tokens.h"

namespace kernelpro {

namespace {

struct Table {
  std::vector<SynonymGroup> groups;
  std::unordered_map<std::string, std::string> alike;  // stem -> first of its row
  std::unordered_map<std::string, double> weights;     // of the words in `said`
};

// A compound is also found by its parts: they are adjacent in paths and names.
void add_name(const std::string& text, std::vector<Phrase>* names) {
  Phrase phrase;
  bool compound = false;
  for (const std::string& word : words(text)) {
    const std::vector<std::string> parts = identifier_parts(word);
    compound = compound || parts.size() > 1;
    for (const std::string& part : parts) {
      if (!is_stop_word(part)) phrase.push_back(stem(part));
    }
  }
  if (phrase.empty()) return;
  names->push_back(std::move(phrase));
  if (compound && text.find(' ') == std::string::npos) names->push_back({text});
}

std::string spoken(const Table& table, const std::string& word) {
  static const std::unordered_set<std::string_view> kSilent = {
      "a",    "an",   "the",  "of",    "to",    "in",    "on",   "at",    "by",    "for",
      "with", "from", "into", "is",    "are",   "be",    "was",  "were",  "it",    "its",
      "this", "that", "as",   "so",    "do",    "does",  "how",  "what",  "which", "when",
      "who",  "can",  "will", "and",   "or",    "they",  "them", "their", "we",    "i",
      "you",  "my",   "our",  "these", "those", "where", "has",  "have",  "there", "being"};
  if (kSilent.count(word) != 0) return "";
  std::string root = stem(word);
  const auto found = table.alike.find(root);
  return found == table.alike.end() ? root : found->second;
}

Phrase said_phrase(const Table& table, const std::string& text) {
  Phrase phrase;
  for (const std::string& word : words(text)) {
    std::string one = spoken(table, word);
    if (!one.empty()) phrase.push_back(std::move(one));
  }
  return phrase;
}

void weigh(Table* table) {
  for (const SynonymGroup& group : table->groups) {
    std::unordered_set<std::string> here;
    for (const Phrase& phrase : group.said) here.insert(phrase.begin(), phrase.end());
    for (const std::string& word : here) ++table->weights[word];
  }
  const auto groups = static_cast<double>(table->groups.size());
  for (auto& [word, weight] : table->weights) weight = std::log(groups / weight);
}

// Parses the file's small format: rows of equivalent words, then [[group]]s of string lists that
// may span lines.
Table read() {
  Table table;
  std::string list;
  for (const std::string& raw : lines(embedded::knowledge_synonyms)) {
    const std::string line(trim(raw));
    if (line == "[[group]]") table.groups.emplace_back();
    if (line.empty() || line[0] == '#' || line.substr(0, 2) == "[[") continue;
    if (line[0] != '"') list = line.substr(0, line.find(' '));
    const std::vector<std::string> cells = split(line, '"');
    for (std::size_t i = 1; i < cells.size(); i += 2) {
      if (table.groups.empty()) {
        table.alike.emplace(stem(cells[i]), stem(cells[1]));
      } else if (list == "names") {
        add_name(cells[i], &table.groups.back().names);
      } else {
        Phrase phrase = said_phrase(table, cells[i]);
        if (!phrase.empty()) table.groups.back().said.push_back(std::move(phrase));
      }
    }
  }
  weigh(&table);
  return table;
}

const Table& table() {
  static const Table kTable = read();
  return kTable;
}

}  // namespace

const std::vector<SynonymGroup>& synonym_groups() { return table().groups; }

std::string spoken_word(const std::string& word) { return spoken(table(), word); }

double spoken_weight(const std::string& spoken) {
  const auto found = table().weights.find(spoken);
  return found == table().weights.end() ? 0 : found->second;
}

}  // namespace kernelpro
