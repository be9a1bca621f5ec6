// SPDX-License-Identifier: Apache-2.0
#include "write/tuner/direction.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>

#include "base/text.h"

namespace kernelpro {

namespace {

constexpr std::string_view kMore[] = {"larger",  "more",   "deeper", "wider",   "longer",
                                      "several", "bigger", "eight",  "multiple"};
constexpr std::string_view kLess[] = {"smaller", "less", "fewer", "shorter", "shallower"};
// "Give each block more or fewer rows".
constexpr std::string_view kBothWays = "more or fewer";
constexpr std::string_view kOnlyUp[] = {"vectorize", "pipeline", "threads"};

template <class Words>
bool is_one_of(std::string_view word, const Words& all) {
  return std::find(std::begin(all), std::end(all), word) != std::end(all);
}

// In lower case, without the punctuation around it.
std::string plain(std::string_view word) {
  std::string text;
  for (const char c : word) {
    if (c >= 'A' && c <= 'Z') text += static_cast<char>(c - 'A' + 'a');
    if (c >= 'a' && c <= 'z') text += c;
  }
  return text;
}

std::optional<double> value_of(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

Direction direction_of(const Prescription& prescription) {
  const bool only_up = is_one_of(prescription.tag, kOnlyUp);
  if (contains(prescription.text, kBothWays)) return Direction::kEither;
  for (const std::string& each : words(prescription.text)) {
    const std::string word = plain(each);
    if (is_one_of(word, kMore)) return Direction::kUp;
    // Fewer accesses are wider ones.
    if (is_one_of(word, kLess)) return only_up ? Direction::kUp : Direction::kDown;
  }
  return only_up ? Direction::kUp : Direction::kEither;
}

bool follows(Direction direction, const Knob& knob, int from, int to) {
  if (direction == Direction::kEither) return true;
  const auto before = value_of(knob.values[static_cast<std::size_t>(from)]);
  const auto after = value_of(knob.values[static_cast<std::size_t>(to)]);
  if (!before || !after) return true;
  return direction == Direction::kUp ? *after > *before : *after < *before;
}

}  // namespace kernelpro
