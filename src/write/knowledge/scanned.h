// SPDX-License-Identifier: Apache-2.0
// The scanners' result for one file.
#pragma once

#include <string>
#include <vector>

namespace kernelpro {

struct Chunk {
  int first = 1;
  int last = 1;
  std::string kind;       // file, type, function, macro, section, block
  std::string symbol;     // what it defines; a section's heading; "" for a block
  std::string doc;        // the comment above it, or its docstring, without markers
  std::string signature;  // on one line, clipped
};

struct NamedLine {
  std::string name;
  std::string kind;  // type, function, macro, alias, declaration
  int line = 1;
};

struct ScannedFile {
  std::string doc;            // the file's own description, without its license
  std::vector<Chunk> chunks;  // the file's head first; outer chunks before inner ones
  std::vector<NamedLine> symbols;
  std::vector<std::string> includes;  // targets as written
  int lines = 0;
};

}  // namespace kernelpro
