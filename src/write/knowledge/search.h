// SPDX-License-Identifier: Apache-2.0
// One library's answer to a question: chunks and files are ranked apart and put together. One
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

// The few lines of the hit that have most of the question's words, from the tree.
void add_excerpt(const std::string& root, const Question& question, Hit* hit);

}  // namespace kernelpro
