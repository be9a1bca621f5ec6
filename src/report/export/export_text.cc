// SPDX-License-Identifier: Apache-2.0
#include "report/export/export_text.h"

#include <algorithm>
#include <cctype>

#include "base/text.h"
#include "core/candidate/knobs.h"

namespace kernelpro {

namespace {

bool word_character(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

// The end of the comment or literal that begins at `i`; `i` if there is none.
std::size_t end_of_unit(std::string_view s, std::size_t i) {
  const auto rest = s.substr(i);
  if (rest.starts_with("//")) return std::min(s.find('\n', i), s.size());
  if (rest.starts_with("/*")) {
    const std::size_t end = s.find("*/", i + 2);
    return end == std::string_view::npos ? s.size() : end + 2;
  }
  if (rest.starts_with("R\"") && (i == 0 || !word_character(s[i - 1]))) {
    const std::size_t open = s.find('(', i);
    if (open == std::string_view::npos) return i;
    const std::string close = ")" + std::string(s.substr(i + 2, open - i - 2)) + "\"";
    const std::size_t end = s.find(close, open);
    return end == std::string_view::npos ? s.size() : end + close.size();
  }
  const bool separator = s[i] == '\'' && i > 0 && word_character(s[i - 1]);  // 1'000
  if ((s[i] != '"' && s[i] != '\'') || separator) return i;
  for (std::size_t k = i + 1; k < s.size() && s[k] != '\n'; ++k) {
    if (s[k] == '\\') {
      ++k;
    } else if (s[k] == s[i]) {
      return k + 1;
    }
  }
  return i + 1;
}

bool is_directive(std::string_view line, std::string_view name) {
  line = trim(line);
  if (line.empty() || line[0] != '#') return false;
  return trim(line.substr(1)).starts_with(name);
}

bool is_line_directive(std::string_view line) { return is_directive(line, "line "); }

// Whether the line consists of the comment `// @knob NAME ...`.
bool is_knob_line(std::string_view line, const std::string& name) {
  line = trim(line);
  if (!line.starts_with("//")) return false;
  const std::vector<std::string> parts = words(line.substr(2));
  return parts.size() > 2 && parts[0] == "@knob" && parts[1] == name;
}

// Whether the #define can replace its comment in place: nothing above uses the name, no #include
// follows, and it is not inside an #if.
bool fits_in_place(const std::vector<std::string>& code, std::size_t at, const std::string& name) {
  int depth = 0;
  for (std::size_t i = 0; i < code.size(); ++i) {
    if (i < at && find_word(code[i], name) != std::string::npos) return false;
    if (i > at && is_directive(code[i], "include")) return false;
    if (i < at && is_directive(code[i], "if")) ++depth;
    if (i < at && is_directive(code[i], "endif")) --depth;
  }
  return depth == 0;
}

}  // namespace

std::string without_comments(std::string_view source) {
  std::string text(source);
  for (std::size_t i = 0; i < source.size();) {
    const std::size_t end = end_of_unit(source, i);
    for (std::size_t k = i; k < end; ++k) {
      if (text[k] != '\n') text[k] = ' ';
    }
    i = std::max(end, i + 1);
  }
  return text;
}

std::size_t find_word(std::string_view code, std::string_view word, bool prefix) {
  for (std::size_t at = code.find(word); at != std::string_view::npos;
       at = code.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    const bool begins = at == 0 || !word_character(code[at - 1]);
    if (begins && (prefix || end == code.size() || !word_character(code[end]))) return at;
  }
  return std::string_view::npos;
}

std::string without_task_header(const std::string& source) {
  std::string text;
  for (const std::string& line : lines(source)) {
    const bool header = is_directive(line, "include") && contains(line, "\"task.h\"");
    if (header || is_directive(line, "pragma once") || is_line_directive(line)) continue;
    text += line + "\n";
  }
  return text;
}

std::string with_sizes(const std::string& module, const std::map<std::string, std::int64_t>& dims) {
  std::vector<std::string> text = lines(std::string(trim(module)));
  std::string after;
  for (const auto& [name, value] : dims) {
    const std::string line = name + " = " + std::to_string(value);
    // Replace a plain top-level assignment to the name. Anything else is overridden at the end of
    // the file, which functions that run later see.
    const auto found = std::find_if(text.begin(), text.end(), [&, &dim = name](const auto& each) {
      return each.starts_with(dim) && trim(each.substr(dim.size())).starts_with("=") &&
             !trim(each.substr(dim.size())).starts_with("==") &&
             each.find_first_of("[({,;\\") == std::string::npos;
    });
    if (found == text.end()) {
      after += "\n" + line;
    } else {
      const std::size_t remark = found->find('#');
      *found = line + (remark == std::string::npos ? "" : "  " + found->substr(remark));
    }
  }
  return join_text(text, "\n") + (after.empty() ? "" : "\n" + after);
}

std::string comment_line(std::string_view text) {
  std::string result = one_line(text);
  while (!result.empty() && result.back() == '\\') result.pop_back();  // would continue a comment
  return result;
}

std::string export_namespace(const Task& task) {
  std::string name = "kernelpro_";
  for (const char c : task.name) name += word_character(c) ? c : '_';
  return name;
}

std::string filled(std::string_view text, const std::map<std::string, std::string>& values) {
  while (text.starts_with("#")) text.remove_prefix(std::min(text.find('\n') + 1, text.size()));
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::size_t end = text[i] == '@' ? text.find('@', i + 1) : std::string_view::npos;
    const auto value = end == std::string_view::npos
                           ? values.end()
                           : values.find(std::string(text.substr(i + 1, end - i - 1)));
    if (value == values.end()) {
      result += text[i];
    } else {
      result += value->second;
      i = end;
    }
  }
  return result;
}

std::string with_fixed_knobs(const std::string& source, const KnobValues& knobs) {
  std::vector<std::string> text = lines(source);
  const std::vector<std::string> code = lines(without_comments(source));
  std::map<std::size_t, std::string> defines;  // by line
  for (const auto& [name, value] : knobs) {
    const auto line = std::find_if(text.begin(), text.end(), [&, &knob = name](const auto& each) {
      return is_knob_line(each, knob);
    });
    const auto at = static_cast<std::size_t>(line - text.begin());
    if (line == text.end() || !fits_in_place(code, at, name)) {
      return apply_knobs(source, knobs);
    }
    defines[at] = "#define " + name + " " + value;
  }
  for (const auto& [at, define] : defines) text[at] = define;
  // The knobs are fixed now: keep each @require, and each @knob said again, as a plain comment.
  for (const Annotation& each : annotations(source, "@knob")) {
    const auto at = static_cast<std::size_t>(each.line) - 1;
    if (defines.count(at) == 0) text[at] = "// knob: " + each.text;
  }
  for (const Annotation& each : annotations(source, "@require")) {
    text[static_cast<std::size_t>(each.line) - 1] = "// required: " + each.text;
  }
  return join_text(text, "\n") + "\n";
}

std::string python_literal(const std::string& text) {
  const bool raw = !contains(text, "'''") && !contains(text, "\r") && !text.empty() &&
                   text.back() != '\'' && text.back() != '\\' && printable(text) == text;
  if (raw) return "r'''" + text + "'''";
  std::string result = "(\n    \"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\n') {
      result += "\\n\"\n    \"";
    } else if (c == '"' || c == '\\') {
      result += std::string("\\") + c;
    } else if (byte < 0x20 || byte == 0x7f) {
      constexpr char kDigits[] = "0123456789abcdef";
      result += std::string("\\x") + kDigits[byte >> 4] + kDigits[byte & 15];
    } else {
      result += c;
    }
  }
  return result + "\"\n)";
}

}  // namespace kernelpro
