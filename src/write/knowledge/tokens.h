// SPDX-License-Identifier: Apache-2.0
// Tokens of the index: an identifier as a whole and its parts, split at case changes and
// underscores; plain words and parts are stemmed. All lower case: ASCII letters, digits and _.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace kernelpro {

// "scheduling", "scheduler", "schedules" -> "schedul". Pure.
std::string stem(std::string_view word);
// English stop words and C++ keywords. Lower case. Pure.
bool is_stop_word(std::string_view word);
// "Sm90TmaWarpSpecialized" -> sm90 tma warp specialized; a single letter is joined with the part
// before it ("splitK" -> split splitk). Lower case, unstemmed. Pure.
std::vector<std::string> identifier_parts(std::string_view identifier);

// Numbers words and caches the tokens of every identifier, so that a tree is indexed quickly. One
// thread at a time.
class Words {
 public:
  // The token numbers of one identifier or word: whole first, then the stemmed parts.
  const std::vector<std::uint32_t>& of(std::string_view word);
  const std::string& text(std::uint32_t number) const { return texts_[number]; }
  std::size_t size() const { return texts_.size(); }
  // Calls `take` for every token of the text.
  template <class Take>
  void each(std::string_view text, Take take) {
    std::size_t at = 0;
    while (at < text.size()) {
      if (!is_word_byte(text[at])) {
        ++at;
        continue;
      }
      const std::size_t begin = at;
      while (at < text.size() && is_word_byte(text[at])) ++at;
      if (at - begin > kLongest) continue;
      for (const std::uint32_t token : of(text.substr(begin, at - begin))) take(token);
    }
  }

 private:
  static constexpr std::size_t kLongest = 96;
  static bool is_word_byte(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  }
  std::uint32_t number(const std::string& token);

  std::unordered_map<std::string, std::uint32_t> numbers_;
  std::vector<std::string> texts_;
  std::unordered_map<std::string, std::vector<std::uint32_t>> known_;
  std::string key_;
};

}  // namespace kernelpro
