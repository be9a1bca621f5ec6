// SPDX-License-Identifier: Apache-2.0
#include "core/candidate.h"

#include "base/hash.h"
#include "base/text.h"

namespace kernelpro {

std::string FindingRef::text() const {
  return tool.empty() || tag.empty() ? tool : tool + ": " + tag;
}

FindingRef FindingRef::parse(std::string_view text) {
  const std::size_t colon = text.find(':');
  FindingRef ref{std::string(trim(text.substr(0, colon))), ""};
  if (colon != std::string_view::npos) ref.tag = trim(text.substr(colon + 1));
  return ref;
}

std::string idea_text(const Origin& origin) {
  if (origin.repairs == 0) return origin.idea;
  return "repair of " + std::to_string(origin.repairs) + ": " + origin.idea;
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
