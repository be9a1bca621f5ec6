// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdlib>

#include "knowledge/scan.h"

// The first byte chooses the language.
extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  using kernelpro::SourceKind;
  if (size == 0) return 0;
  const SourceKind languages[] = {SourceKind::kCpp, SourceKind::kPython, SourceKind::kMarkdown,
                                  SourceKind::kText};
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const kernelpro::ScannedFile file = kernelpro::scan(languages[data[0] % 4], text);
  for (const kernelpro::Chunk& chunk : file.chunks) {
    if (chunk.first < 1 || chunk.last > std::max(file.lines, 1)) std::abort();
  }
  if (kernelpro::owners(file).size() != static_cast<std::size_t>(file.lines)) std::abort();
  return 0;
}
