// SPDX-License-Identifier: Apache-2.0
#include "core/candidate.h"

#include "base/hash.h"

namespace kernelpro {

namespace {
constexpr std::string_view kLanguages[] = {"cpp", "cuda", "python"};
}

std::string_view language_name(Language language) { return kLanguages[static_cast<int>(language)]; }

std::optional<Language> language_from_name(std::string_view name) {
  for (const Language language : {Language::kCpp, Language::kCuda, Language::kPython}) {
    if (language_name(language) == name) return language;
  }
  return std::nullopt;
}

std::string knobs_to_text(const KnobValues& knobs) {
  std::string text;
  for (const auto& [name, value] : knobs) {
    if (!text.empty()) text += ' ';
    text += name + "=" + value;
  }
  return text;
}

std::string Candidate::content_hash() const {
  return hash_hex({language_name(language), source, knobs_to_text(knobs)});
}

}  // namespace kernelpro
