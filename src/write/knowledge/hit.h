// SPDX-License-Identifier: Apache-2.0
// What the index answers. Lines count from 1, sizes are bytes, times are seconds.
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

}  // namespace kernelpro
