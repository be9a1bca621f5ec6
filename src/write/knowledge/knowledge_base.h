// SPDX-License-Identifier: Apache-2.0
// Code search over source trees, for models, MCP clients and people. A library is an indexed tree:
// one SQLite file (FTS5) in a folder of this user's state. The index holds words and positions,
// never the sources: text is read from the tree, and reads stay inside it.
// A KnowledgeBase is used by one thread at a time; several processes may search while one updates.
// Lines count from 1, sizes are bytes, times are seconds.
// Errors: kBadInput for an unknown library, path or empty question; kStore when an index cannot be
// read or written.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "write/knowledge/hit.h"

namespace kernelpro {

class Database;

// state_dir()/knowledge.
std::string knowledge_folder();

class KnowledgeBase {
 public:
  // `folder` is created with the first library.
  explicit KnowledgeBase(std::string folder);
  ~KnowledgeBase();
  KnowledgeBase(const KnowledgeBase&) = delete;
  KnowledgeBase& operator=(const KnowledgeBase&) = delete;

  // Indexes a tree under a name ([A-Za-z0-9._-]). An existing name is an error, unless `update`:
  // then only changed files are read again. Links are not followed.
  Result<IndexReport> add(const std::string& name, const std::string& directory, bool update);
  Result<void> remove(const std::string& name);
  std::vector<Library> list();

  // `library` "" = all. Best first. `language:cuda` (cpp, python) in the query overrides the
  // settings' language.
  Result<std::vector<Hit>> search_code(const std::string& query, const std::string& library,
                                       const SearchSettings& settings);
  // Lines first..last of an indexed file; `last` 0 = to the end. At most 400 lines and 64 KiB.
  Result<CodeText> read_code(const std::string& library, const std::string& path, int first,
                             int last);
  // Folders and files directly below a folder ("" = the root). At most 1000.
  Result<std::vector<CodeEntry>> list_code(const std::string& library, const std::string& prefix);

 private:
  Result<Database*> open(const std::string& name);
  std::string path_of(const std::string& name) const;

  std::string folder_;
  std::map<std::string, std::unique_ptr<Database>> open_;
};

}  // namespace kernelpro
