// SPDX-License-Identifier: Apache-2.0
// What the scanners find in one file.
#pragma once

#include <string>
#include <vector>

namespace kernelpro {

struct Chunk {
  int first = 1;
  int last = 1;
  std::string kind;       // file, type, function, macro, section, block
  std::string symbol;     // what it defines; of a section its heading; "" of a block
  std::string doc;        // the comment above it, or its docstring, without marks
  std::string signature;  // on one line, clipped
};

struct NamedLine {
  std::string name;
  std::string kind;  // type, function, macro, alias, declaration
  int line = 1;
};

struct ScannedFile {
  std::string doc;            // what the file says of itself; no licence
  std::vector<Chunk> chunks;  // the first is the file's head; outer ones before those inside them
  std::vector<NamedLine> symbols;
  std::vector<std::string> includes;  // targets as written
  int lines = 0;
};

}  // namespace kernelpro
