// SPDX-License-Identifier: Apache-2.0
#include "knowledge/question.h"

#include <algorithm>
#include <cctype>
#include <unordered_set>

#include "knowledge/synonyms.h"
#include "knowledge/tokens.h"

namespace kernelpro {

namespace {

constexpr std::size_t kMostConcepts = 24;
constexpr std::size_t kMostForms = 8;
constexpr std::size_t kLongestWord = 96;
constexpr double kSynonymWeight = 1.0;
constexpr double kFieldWeight = 1.5;
constexpr double kPhraseWeight = 1.2;
constexpr double kWordOfPhrase = 0.45;
// Parts of an identifier, against the whole of it.
constexpr double kPartWeight = 0.45;

std::vector<std::string> raw_words(const std::string& text) {
  std::vector<std::string> found;
  std::string word;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    const char c = i < text.size() ? text[i] : ' ';
    if (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_') {
      word += c;
      continue;
    }
    if (!word.empty() && word.size() <= kLongestWord) found.push_back(word);
    word.clear();
  }
  return found;
}

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

void add_form(Concept* concept_, Form form) {
  if (concept_->forms.size() >= kMostForms) return;
  for (const Form& known : concept_->forms) {
    if (known.words == form.words) return;
  }
  concept_->forms.push_back(std::move(form));
}

// A plain word and where its concept is.
struct Plain {
  std::string stem;
  std::size_t at = 0;
};

bool stands_at(const Phrase& phrase, const std::vector<Plain>& plain, std::size_t at) {
  if (at + phrase.size() > plain.size()) return false;
  for (std::size_t k = 0; k < phrase.size(); ++k) {
    if (plain[at + k].stem != phrase[k]) return false;
  }
  return true;
}

// A word of the field counts more than another, and its other names are asked for as well. Several
// words that are one name are one concept; each by itself then says little.
void add_synonyms(const std::vector<Plain>& plain, Question* question) {
  std::vector<bool> weakened(question->concepts.size(), false);
  std::unordered_set<std::size_t> raised;
  for (const std::vector<Phrase>& group : synonym_groups()) {
    for (const Phrase& phrase : group) {
      for (std::size_t i = 0; i < plain.size(); ++i) {
        if (!stands_at(phrase, plain, i)) continue;
        std::size_t target = plain[i].at;
        if (phrase.size() > 1 && question->concepts.size() < kMostConcepts) {
          target = question->concepts.size();
          question->concepts.push_back({{{phrase, 1}}, kPhraseWeight});
          for (std::size_t k = 0; k < phrase.size(); ++k) {
            const std::size_t word = plain[i + k].at;
            if (word >= weakened.size() || weakened[word]) continue;
            weakened[word] = true;
            question->concepts[word].weight *= kWordOfPhrase;
          }
        } else if (raised.insert(target).second) {
          question->concepts[target].weight *= kFieldWeight;
        }
        for (const Phrase& other : group) {
          if (other != phrase) add_form(&question->concepts[target], {other, kSynonymWeight});
        }
      }
    }
  }
}

}  // namespace

Question read_question(const std::string& text) {
  Question question;
  std::vector<Plain> plain;
  std::unordered_set<std::string> seen;
  std::string before;
  for (const std::string& word : raw_words(text)) {
    if (question.concepts.size() >= kMostConcepts) break;
    const std::string small = lower(word);
    // stream-k, split K: the letter belongs to what stands before it.
    if (small.size() == 1) {
      if (!plain.empty() && !before.empty() && small != "a") {
        add_form(&question.concepts[plain.back().at], {{before + small}, 1.3});
        plain.push_back({small, plain.back().at});
      }
      continue;
    }
    if (is_stop_word(small)) continue;
    const std::vector<std::string> parts = identifier_parts(word);
    const bool capitals =
        std::any_of(word.begin() + 1, word.end(), [](char c) { return c >= 'A' && c <= 'Z'; });
    if (parts.size() > 1 || capitals || word.find('_') != std::string::npos) {
      question.identifiers.push_back(word);
    }
    if (!seen.insert(small).second) continue;
    if (parts.size() > 1) {
      question.concepts.push_back({{{{small}, 1}}, 1});
      before.clear();
      for (const std::string& part : parts) {
        if (part.size() < 2 || is_stop_word(part)) continue;
        if (question.concepts.size() >= kMostConcepts) break;
        const std::string root = stem(part);
        if (!seen.insert(root).second) continue;
        question.concepts.push_back({{{{root}, 1}}, kPartWeight});
      }
      continue;
    }
    if (parts.empty()) continue;
    const std::string root = stem(small);
    if (root != small && !seen.insert(root).second) continue;
    before = small;
    plain.push_back({root, question.concepts.size()});
    question.concepts.push_back({{{{root}, 1}}, 1});
  }
  add_synonyms(plain, &question);
  return question;
}

}  // namespace kernelpro
