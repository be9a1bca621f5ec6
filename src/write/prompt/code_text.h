// SPDX-License-Identifier: Apache-2.0
// Distinguishes source code from prose about it. Lexical and lenient: what may be code is code.
// Pure.
#pragma once

#include <string>
#include <string_view>

#include "core/candidate/candidate.h"

namespace kernelpro {

// The text with comments and literals blanked out; line numbers stay the same.
std::string without_comments(std::string_view text, Language language);

// The first line of prose in a source: four words in a row that no operator, keyword or comment
// marker explains, or a backtick, which no line of C++ or Python has. "" if all may be code.
std::string first_prose(const std::string& text, Language language);

}  // namespace kernelpro
