// SPDX-License-Identifier: Apache-2.0
// Any bytes as a source text; the first byte chooses the language. Chunks lie within the text, a
// line lies within its owner, texts are bounded, and valid UTF-8 stays valid.
#include <algorithm>
#include <cstdlib>

#include "base/text.h"
#include "write/knowledge/scan_parts.h"

namespace {

using namespace kernelpro;

bool good(const std::string& text) { return printable(text) == text; }

void check_text(const std::string& text, std::size_t most, bool good_input) {
  if (text.size() > most || (good_input && !good(text))) std::abort();
}

void check_chunk(const Chunk& chunk, const ScannedFile& file, bool good_input) {
  if (chunk.kind.empty() || chunk.first < 1 || chunk.last < chunk.first) std::abort();
  if (chunk.last > file.lines) std::abort();
  check_text(chunk.doc, kDocBytes, good_input);
  check_text(chunk.signature, kSignatureBytes + 3, good_input);
  if (good_input && !good(chunk.symbol)) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  if (size == 0) return 0;
  const SourceKind languages[] = {SourceKind::kCpp, SourceKind::kPython, SourceKind::kMarkdown,
                                  SourceKind::kText, SourceKind::kCuda};
  const std::string text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const ScannedFile file = scan(languages[data[0] % 5], text);
  const bool good_input = good(text);
  const auto lines = line_views(text);
  if (static_cast<std::size_t>(file.lines) != lines.size()) std::abort();
  check_text(file.doc, kDocBytes, good_input);
  for (const Chunk& chunk : file.chunks) check_chunk(chunk, file, good_input);
  for (const NamedLine& symbol : file.symbols) {
    if (symbol.line < 1 || symbol.line > file.lines || symbol.name.empty()) std::abort();
    if (!contains(text, symbol.name) && symbol.name[0] != '~') std::abort();
  }
  for (const std::string& target : file.includes) {
    if (!contains(text, target)) std::abort();
  }
  const std::vector<int> owner = owners(file);
  if (owner.size() != lines.size()) std::abort();
  for (std::size_t i = 0; i < owner.size(); ++i) {
    if (owner[i] >= static_cast<int>(file.chunks.size())) std::abort();
    if (owner[i] < 0) continue;
    const Chunk& chunk = file.chunks[owner[i]];
    const int line = static_cast<int>(i) + 1;
    if (line < chunk.first || line > chunk.last) std::abort();
  }
  return 0;
}
