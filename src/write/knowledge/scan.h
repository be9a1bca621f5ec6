// SPDX-License-Identifier: Apache-2.0
// Cuts a source text into the pieces that a search should find: definitions with the comment above
// them, sections of a page, and blocks of lines for what is left. No compiler: a tolerant scanner
// that takes any bytes and always ends; what it misreads it gives as blocks. Lines count from 1.
// Pure functions, any thread; linear in the text but for nested conditionals of the preprocessor.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "write/knowledge/scanned.h"

namespace kernelpro {

enum class SourceKind { kNone, kCpp, kCuda, kPython, kMarkdown, kText };

// By the name's ending; kNone is not indexed.
SourceKind source_kind_of(std::string_view path);
std::string_view source_kind_name(SourceKind language);

ScannedFile scan(SourceKind language, std::string_view text);

// Index of the innermost chunk by line - 1; -1 = none.
std::vector<int> owners(const ScannedFile& file);

// NUL bytes among the first 8 KiB.
bool is_binary(std::string_view text);

}  // namespace kernelpro
