// SPDX-License-Identifier: Apache-2.0
// Text work of the export: comments, words, literals. Pure functions.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "core/candidate.h"
#include "core/task.h"

namespace kernelpro {

// Comments become spaces (line ends stay), string and character literals too.
std::string without_comments(std::string_view source);

// First place of an identifier in text without comments, or npos. With `prefix`, identifiers that
// begin with `word` count as well.
std::size_t find_word(std::string_view code, std::string_view word, bool prefix = false);

// Without `#include "task.h"`, `#pragma once` and #line.
std::string without_task_header(const std::string& source);

// A PyTorch file's text with the integers at its top as a case has them, so that its get_inputs()
// gives the sizes that the kernel was made for.
std::string with_sizes(const std::string& module, const std::map<std::string, std::int64_t>& dims);

// Control characters and line ends become spaces: for comments.
std::string one_line(std::string_view text);

// A namespace for the exported functions: "kernelpro_" and the task's name as an identifier.
std::string export_namespace(const Task& task);

// export_texts/model_new.py with each @NAME@ replaced.
std::string filled_model_new(const std::map<std::string, std::string>& values);

// The candidate's source with its knobs fixed: each `@knob` comment becomes a #define in its place
// where nothing above it uses the name, else all of them go behind the includes.
std::string with_fixed_knobs(const std::string& source, const KnobValues& knobs);

// `text` as a Python string literal.
std::string python_literal(const std::string& text);

}  // namespace kernelpro
