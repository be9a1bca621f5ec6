// SPDX-License-Identifier: Apache-2.0
// Cuts a source text into searchable pieces: definitions with the comment above them, sections of a
// page, and blocks of lines for the rest. Not a compiler: a tolerant scanner that accepts any bytes
// and always terminates; code that it cannot parse becomes blocks. Lines count from 1. Pure
// functions, any thread; linear in the text, except for nested preprocessor conditionals.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "write/knowledge/scanned.h"

namespace kernelpro {

enum class SourceKind { kNone, kCpp, kCuda, kPython, kMarkdown, kText };

// By the file extension; kNone is not indexed.
SourceKind source_kind_of(std::string_view path);
std::string_view source_kind_name(SourceKind language);

ScannedFile scan(SourceKind language, std::string_view text);

// Maps line - 1 to the index of the innermost chunk; -1 = none.
std::vector<int> owners(const ScannedFile& file);

// Whether the first 8 KiB contain NUL bytes.
bool is_binary(std::string_view text);

}  // namespace kernelpro
