// SPDX-License-Identifier: Apache-2.0
#include "write/knowledge/question.h"

#include <algorithm>
#include <cctype>
#include <unordered_set>

#include "base/text.h"
#include "write/knowledge/synonyms.h"
#include "write/knowledge/tokens.h"

namespace kernelpro {

namespace {

constexpr std::size_t kMostConcepts = 24;
constexpr std::size_t kMostForms = 16;
constexpr std::size_t kNoConcept = ~std::size_t{0};
// Other words allowed inside a described phrase.
constexpr std::size_t kWordsBetween = 3;
constexpr std::size_t kLongestWord = 96;
constexpr double kSynonymWeight = 1.0;
constexpr double kFieldWeight = 1.5;
constexpr double kPhraseWeight = 1.2;
constexpr double kWordOfPhrase = 0.45;
constexpr double kSaidWeight = 1.5;
// A phrase counts from this share of its words' weight, and fully from this much (see how_said).
constexpr double kLeastSaid = 0.55;
constexpr double kFullySaid = 8;
// A description good enough that its single words add little.
constexpr double kWellSaid = 0.6 * kFullySaid;
constexpr std::size_t kMostSaid = 4;
constexpr double kWordOfSaid = 0.5;
// Parts of an identifier, relative to the whole.
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

void add_form(Concept* concept_, Form form) {
  if (concept_->forms.size() >= kMostForms) return;
  for (const Form& known : concept_->forms) {
    if (known.words == form.words) return;
  }
  concept_->forms.push_back(std::move(form));
}

// A plain word and the place of its concept.
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

// How well a question expresses a phrase: the weight of its words that are near each other in the
// question, in any order, times the square of their share of the phrase. 0 = at most one word of
// several.
double how_said(const Phrase& phrase, const std::vector<Plain>& spoken) {
  double all = 0;
  for (const std::string& word : phrase) all += spoken_weight(word);
  double most = 0;
  for (std::size_t begin = 0; begin < spoken.size(); ++begin) {
    const auto first = spoken.begin() + static_cast<std::ptrdiff_t>(begin);
    const auto last = first + static_cast<std::ptrdiff_t>(
                                  std::min(spoken.size() - begin, phrase.size() + kWordsBetween));
    double told = 0;
    std::size_t count = 0;
    for (const std::string& word : phrase) {
      if (std::none_of(first, last, [&](const Plain& one) { return one.stem == word; })) continue;
      told += spoken_weight(word);
      ++count;
    }
    if (count >= std::min<std::size_t>(phrase.size(), 2)) most = std::max(most, told);
  }
  const double share = most / all;
  return share < kLeastSaid ? 0 : most * share * share;
}

// Finds the field's concepts in the question, by name and by description.
class Thesaurus {
 public:
  Thesaurus(const std::vector<Plain>& plain, const std::vector<Plain>& spoken, Question* question)
      : plain_(plain),
        spoken_(spoken),
        question_(question),
        weakened_(question->concepts.size(), false) {}

  void apply() {
    for (const SynonymGroup& group : synonym_groups()) {
      bool named = false;
      for (const Phrase& name : group.names) named = add_name(group, name) || named;
      if (!named) find_said(group);
    }
    add_said();
  }

 private:
  struct Said {
    const SynonymGroup* group = nullptr;
    const Phrase* phrase = nullptr;
    double score = 0;
  };

  // A term of the field counts more than another word, and its other names are searched as well.
  // Several words that form one name are one concept; each by itself then counts little.
  bool add_name(const SynonymGroup& group, const Phrase& name) {
    bool found = false;
    for (std::size_t i = 0; i < plain_.size(); ++i) {
      if (!stands_at(name, plain_, i)) continue;
      found = true;
      std::size_t target = plain_[i].at;
      if (name.size() > 1 && question_->concepts.size() < kMostConcepts) {
        target = question_->concepts.size();
        question_->concepts.push_back({{{name, 1}}, kPhraseWeight});
        for (std::size_t k = 0; k < name.size(); ++k) weaken(plain_[i + k].at, kWordOfPhrase);
      } else if (raised_.insert(target).second) {
        question_->concepts[target].weight *= kFieldWeight;
      }
      for (const Phrase& other : group.names) {
        if (other != name) add_form(&question_->concepts[target], {other, kSynonymWeight});
      }
    }
    return found;
  }

  // A concept described without its name is searched by its names.
  void find_said(const SynonymGroup& group) {
    Said best;
    best.group = &group;
    for (const Phrase& phrase : group.said) {
      const double score = how_said(phrase, spoken_);
      if (score > best.score) {
        best.score = score;
        best.phrase = &phrase;
      }
    }
    if (best.score > 0) said_.push_back(best);
  }

  void add_said() {
    std::stable_sort(said_.begin(), said_.end(),
                     [](const Said& a, const Said& b) { return a.score > b.score; });
    if (said_.size() > kMostSaid) said_.resize(kMostSaid);
    for (const Said& said : said_) {
      if (question_->concepts.size() >= kMostConcepts) return;
      Concept idea{{}, kSaidWeight * std::min(said.score / kFullySaid, 1.0)};
      for (const Phrase& name : said.group->names) add_form(&idea, {name, 1});
      question_->concepts.push_back(std::move(idea));
      if (said.score < kWellSaid) continue;
      for (const Plain& one : spoken_) {
        const Phrase& phrase = *said.phrase;
        if (std::find(phrase.begin(), phrase.end(), one.stem) != phrase.end()) {
          weaken(one.at, kWordOfSaid);
        }
      }
    }
  }

  void weaken(std::size_t at, double by) {
    if (at >= weakened_.size() || weakened_[at]) return;
    weakened_[at] = true;
    question_->concepts[at].weight *= by;
  }

  const std::vector<Plain>& plain_;
  const std::vector<Plain>& spoken_;
  Question* question_;
  std::vector<bool> weakened_;
  std::unordered_set<std::size_t> raised_;
  std::vector<Said> said_;
};

}  // namespace

Question read_question(const std::string& text) {
  Question question;
  std::vector<Plain> plain;
  std::vector<Plain> spoken;
  std::unordered_set<std::string> seen;
  std::string before;
  for (const std::string& word : raw_words(text)) {
    if (question.concepts.size() >= kMostConcepts) break;
    const std::string small = small_letters(word);
    const std::string one = spoken_word(small);
    if (!one.empty()) spoken.push_back({one, kNoConcept});
    // stream-k, split K: the letter belongs to the word before it.
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
    if (!one.empty()) spoken.back().at = question.concepts.size();
    question.concepts.push_back({{{{root}, 1}}, 1});
  }
  Thesaurus(plain, spoken, &question).apply();
  return question;
}

}  // namespace kernelpro
