// SPDX-License-Identifier: Apache-2.0
// What the scanners of the languages share. Pure functions, any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "write/knowledge/scanned.h"

namespace kernelpro {

// Texts of documentation and signatures are clipped to these.
constexpr std::size_t kDocBytes = 4000;
constexpr std::size_t kSignatureBytes = 400;
// Types within types beyond this are scanned no further: each line belongs to all of them.
constexpr std::size_t kDeepest = 200;

void scan_cpp(std::string_view text, ScannedFile* file);
void scan_python(std::string_view text, ScannedFile* file);
void scan_markdown(std::string_view text, ScannedFile* file);

// A comment or docstring without its marks and rulers; "" when it is a licence.
std::string clean_doc(std::string_view comment);
// White space runs become one space; clipped.
std::string one_line(std::string_view text, std::size_t max_bytes);
// Without line ends (a final \r goes as well); views into the text.
std::vector<std::string_view> line_views(std::string_view text);
void append_doc(std::string* doc, const std::string& more);

}  // namespace kernelpro
