// SPDX-License-Identifier: Apache-2.0
#include "core/evidence/missing.h"

namespace kernelpro {

std::vector<std::string> missing_names(const Missing& missing) {
  if (!missing.metrics.empty()) return missing.metrics;
  const std::string words(family_words(missing.family));
  return {missing.part.empty() ? words : words + " " + missing.part};
}

}  // namespace kernelpro
