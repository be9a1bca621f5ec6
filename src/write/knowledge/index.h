// SPDX-License-Identifier: Apache-2.0
// Writes the index of a tree: files, chunks, symbols and includes, and two full-text tables of
// preprocessed words (write/knowledge/tokens.h), one with a row per chunk and one with a row per
// file. One thread at a time.
#pragma once

#include "base/error.h"
#include "base/sqlite.h"
#include "write/knowledge/hit.h"

namespace kernelpro {

// Increase whenever the tables or the word processing change; an older index is rebuilt.
constexpr int kIndexVersion = 3;

// Columns of each full-text table. Of chunks: symbol, path, doc, signature, body; of files:
// symbols, path, intro, docs, body.
constexpr int kColumns = 5;

// Creates the tables in an empty database.
Result<void> create_index(Database* database, const std::string& root);
// Brings the index up to date with the tree, in one transaction. Fails with kStore, leaving the
// index unchanged.
Result<IndexReport> update_index(Database* database, const std::string& root);

}  // namespace kernelpro
