// SPDX-License-Identifier: Apache-2.0
// Text processing for the export: comments, identifiers, literals. Pure functions.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "core/candidate/candidate.h"
#include "core/task/task.h"

namespace kernelpro {

// Replaces comments and string and character literals with spaces; newlines stay.
std::string without_comments(std::string_view source);

// Position of the first occurrence of an identifier in text without comments, or npos. With
// `prefix`, identifiers that begin with `word` count as well.
std::size_t find_word(std::string_view code, std::string_view word, bool prefix = false);

// Removes `#include "task.h"`, `#pragma once` and #line.
std::string without_task_header(const std::string& source);

// A PyTorch file with the integers at its top set to those of a case, so that its get_inputs()
// returns the sizes that the kernel was built for.
std::string with_sizes(const std::string& module, const std::map<std::string, std::int64_t>& dims);

// One line that ends with the comment that it is in.
std::string comment_line(std::string_view text);

// Namespace of the exported functions: "kernelpro_" and the task's name as an identifier.
std::string export_namespace(const Task& task);

// A template of texts/ without the comment that it begins with, each @NAME@ replaced.
std::string filled(std::string_view text, const std::map<std::string, std::string>& values);

// The candidate's source with its knobs fixed. Each `@knob` comment becomes a #define in its place
// if nothing above it uses the name; otherwise all #defines go after the includes.
std::string with_fixed_knobs(const std::string& source, const KnobValues& knobs);

// `text` as a Python string literal.
std::string python_literal(const std::string& text);

}  // namespace kernelpro
