// SPDX-License-Identifier: Apache-2.0
// Names that mean the same thing, from synonyms.toml. Immutable after the first call; any thread.
#pragma once

#include <string>
#include <vector>

namespace kernelpro {

// A phrase as stems.
using Phrase = std::vector<std::string>;

// Groups of phrases.
const std::vector<std::vector<Phrase>>& synonym_groups();

}  // namespace kernelpro
