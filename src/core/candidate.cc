// SPDX-License-Identifier: Apache-2.0
#include "core/candidate.h"

#include "base/hash.h"

namespace kernelpro {

std::string knobs_to_text(const KnobValues& knobs) {
  std::string text;
  for (const auto& [name, value] : knobs) {
    if (!text.empty()) text += ' ';
    text += name + "=" + value;
  }
  return text;
}

std::string Candidate::content_hash() const {
  return hash_hex({language == Language::kCuda ? "cuda" : "cpp", source, knobs_to_text(knobs)});
}

}  // namespace kernelpro
