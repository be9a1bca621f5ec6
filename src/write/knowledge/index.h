// SPDX-License-Identifier: Apache-2.0
// Writes the index of a tree: files, chunks, symbols and includes, and two full-text tables of
// prepared words (write/knowledge/tokens.h), one row a chunk and one row a file. One thread at a
// time.
#pragma once

#include "base/error.h"
#include "base/sqlite.h"
#include "write/knowledge/hit.h"

namespace kernelpro {

// Raised with every change of the tables or of how words are made; an older index is built anew.
constexpr int kIndexVersion = 2;

// The columns of the full-text tables, in order.
enum ChunkColumn { kChunkSymbol, kChunkPath, kChunkDoc, kChunkSignature, kChunkBody };
enum FileColumn { kFileSymbol, kFilePath, kFileIntro, kFileDoc, kFileBody };
constexpr int kColumns = 5;

// Makes the tables in an empty database.
Result<void> create_index(Database* database, const std::string& root);
// Brings the index up to date with the tree, in one transaction. Fails with kStore, and changes
// nothing then.
Result<IndexReport> update_index(Database* database, const std::string& root);

}  // namespace kernelpro
