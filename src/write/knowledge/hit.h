// SPDX-License-Identifier: Apache-2.0
// Results of the index. Lines count from 1, sizes are bytes, times are seconds.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace kernelpro {

struct IndexReport {
  int files = 0;  // in the index now
  int read = 0;   // new or changed, and scanned
  int unchanged = 0;
  int removed = 0;
  int skipped = 0;  // an indexed kind, but binary, too large or unreadable
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
  std::string symbol;     // of a block or a head: names that it declares
  std::string scope;      // the type or function around it; "" = none
  std::string doc;        // one line
  std::string signature;  // one line
  double score = 0;       // comparable only within one answer
  int excerpt_first = 0;
  std::string excerpt;              // a few lines; "" when the tree is gone or has changed
  std::vector<std::string> copies;  // paths of near-copies folded into this hit
};

// With what is around it: "Pipeline::consumer_wait".
inline std::string full_name(const Hit& hit) {
  return hit.scope.empty() ? hit.symbol : hit.scope + "::" + hit.symbol;
}

struct SearchSettings {
  int limit = 10;  // at most 100
  bool one_per_file = true;
  bool excerpts = true;
  // "c++", "cuda" or "python": files of the other family (C++ and CUDA are one) count less. "" =
  // any.
  std::string language;
};

struct CodeText {
  std::string path;
  int first = 0;
  int last = 0;          // of the text returned
  int lines = 0;         // of the file
  std::string text;      // printable
  bool clipped = false;  // size limits cut the requested range
  bool changed = false;  // the file differs from the indexed version
};

struct CodeEntry {
  std::string path;  // a folder's ends in /
  std::string language;
  std::int64_t bytes = 0;
  int files = 1;  // below a folder
};

}  // namespace kernelpro
