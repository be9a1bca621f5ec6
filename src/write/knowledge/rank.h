// SPDX-License-Identifier: Apache-2.0
// Scores the rows of a full-text table for a question: BM25 with weights by column, once for each
// concept (the best of its forms counts), inside SQLite as a function of FTS5. One thread at a time
// per database.
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
  double weights[5] = {};      // by column
  double length_share = 0.5;   // BM25's b, on the last column
  double saturation = 1.2;     // BM25's k1
  std::int64_t most_rows = 0;  // words of so many rows in all are looked at, rare ones first
  int limit = 0;
};

extern const Ranking kChunkRanking;
extern const Ranking kFileRanking;

// Best first. Fails with kStore.
Result<std::vector<Scored>> rank_rows(Database* database, const Question& question,
                                      const Ranking& ranking);

}  // namespace kernelpro
