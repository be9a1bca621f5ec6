// SPDX-License-Identifier: Apache-2.0
// Scores the rows of a full-text table for a question: BM25 with per-column weights, once per
// concept (its best form counts), inside SQLite as an FTS5 function. One thread at a time per
// database.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "base/sqlite.h"
#include "write/knowledge/question.h"

namespace kernelpro {

struct Scored {
  std::int64_t row = 0;
  double score = 0;
};

struct Ranking {
  const char* table = "";      // chunk_text or file_text
  double weights[5] = {};      // per column
  double length_share = 0.5;   // BM25's b, on the last column
  double saturation = 1.2;     // BM25's k1
  std::int64_t most_rows = 0;  // total row budget, spent on rare words first
  int limit = 0;
};

extern const Ranking kChunkRanking;
extern const Ranking kFileRanking;

// Best first. Fails with kStore.
Result<std::vector<Scored>> rank_rows(Database* database, const Question& question,
                                      const Ranking& ranking);

}  // namespace kernelpro
