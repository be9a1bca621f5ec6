// SPDX-License-Identifier: Apache-2.0
// Shared by the language scanners. Pure functions, any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "write/knowledge/scanned.h"

namespace kernelpro {

// Documentation and signatures are clipped to these sizes.
constexpr std::size_t kDocBytes = 4000;
constexpr std::size_t kSignatureBytes = 400;
// Types nested deeper are not scanned: each line would belong to all of them.
constexpr std::size_t kDeepest = 200;

void scan_cpp(std::string_view text, ScannedFile* file);
void scan_python(std::string_view text, ScannedFile* file);
void scan_markdown(std::string_view text, ScannedFile* file);

// A comment or docstring without its markers, rulers and paragraphs of a licence.
std::string clean_doc(std::string_view comment);
// Collapses white space to single spaces; clipped.
std::string one_line(std::string_view text, std::size_t max_bytes);
// Without line endings (including a final \r); views into the text.
std::vector<std::string_view> line_views(std::string_view text);
void append_doc(std::string* doc, const std::string& more);

}  // namespace kernelpro
