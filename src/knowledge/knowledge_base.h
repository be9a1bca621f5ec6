// SPDX-License-Identifier: Apache-2.0
// Code search over source trees, for models, MCP clients and people. A library is an indexed tree:
// one SQLite file (FTS5) beside others in a folder of this user's state. The index holds words and
// positions, never the sources: what is shown is read from the tree, and reads stay inside it.
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

namespace kernelpro {

class Database;

struct IndexReport {
  int files = 0;  // in the index now
  int read = 0;   // new or changed, and scanned
  int unchanged = 0;
  int removed = 0;
  int skipped = 0;  // of a kind that is indexed, but binary, too large or unreadable
  std::int64_t chunks = 0;
  std::int64_t bytes = 0;  // of all files
  double seconds = 0;
};

struct Library {
  std::string name;
  std::string root;
  std::string updated;  // UTC
  std::int64_t files = 0;
  std::int64_t chunks = 0;
  std::string fault;  // why the index cannot be used; "" = it can
};

struct Hit {
  std::string library;
  std::string path;  // from the library's root
  int first = 0;
  int last = 0;
  std::string kind;
  std::string symbol;
  std::string doc;        // one line
  std::string signature;  // one line
  double score = 0;       // comparable within one answer only
  int excerpt_first = 0;
  std::string excerpt;              // a few lines; "" when the tree has gone or changed
  std::vector<std::string> copies;  // paths of near-copies that are folded into this hit
};

struct SearchSettings {
  int limit = 10;  // at most 100
  bool one_per_file = true;
  bool excerpts = true;
};

struct CodeText {
  std::string path;
  int first = 0;
  int last = 0;          // of what is given
  int lines = 0;         // of the file
  std::string text;      // printable
  bool clipped = false;  // the sizes allowed gave less than was asked for
  bool changed = false;  // the file differs from what was indexed
};

struct CodeEntry {
  std::string path;  // of a folder with a / at the end
  std::string language;
  std::int64_t bytes = 0;
  int files = 1;  // below a folder
};

// state_dir()/knowledge.
std::string knowledge_folder();

class KnowledgeBase {
 public:
  // `folder` is made with the first library.
  explicit KnowledgeBase(std::string folder);
  ~KnowledgeBase();
  KnowledgeBase(const KnowledgeBase&) = delete;
  KnowledgeBase& operator=(const KnowledgeBase&) = delete;

  // Indexes a tree under a name ([A-Za-z0-9._-]). A name that exists is an error, unless `update`:
  // then only what changed is read again. Links are not followed.
  Result<IndexReport> add(const std::string& name, const std::string& directory, bool update);
  Result<void> remove(const std::string& name);
  std::vector<Library> list();

  // `library` "" = all. Best first.
  Result<std::vector<Hit>> search_code(const std::string& query, const std::string& library,
                                       const SearchSettings& settings);
  // Lines first..last of an indexed file; `last` 0 = to the end. At most 400 lines and 64 KiB.
  Result<CodeText> read_code(const std::string& library, const std::string& path, int first,
                             int last);
  // The folders and files right below a folder ("" = the root). At most 1000.
  Result<std::vector<CodeEntry>> list_code(const std::string& library, const std::string& prefix);

 private:
  Result<Database*> open(const std::string& name);
  std::string path_of(const std::string& name) const;

  std::string folder_;
  std::map<std::string, std::unique_ptr<Database>> open_;
};

}  // namespace kernelpro
