// SPDX-License-Identifier: Apache-2.0
// Answers a question from one library: ranks chunks and files separately and merges them. One
// thread at a time per database.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "base/sqlite.h"
#include "write/knowledge/hit.h"
#include "write/knowledge/question.h"

namespace kernelpro {

// Best first; at most settings.limit, without library names and excerpts.
Result<std::vector<Hit>> search_library(Database* database, const Question& question,
                                        const SearchSettings& settings);

// Adds the few lines of the hit with most of the question's words, read from the tree.
void add_excerpt(const std::string& root, const Question& question, Hit* hit);

}  // namespace kernelpro
