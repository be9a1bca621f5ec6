// SPDX-License-Identifier: Apache-2.0
// Python by indentation, Markdown by headings.
#include <algorithm>
#include <cctype>

#include "base/text.h"
#include "write/knowledge/scan_declaration.h"
#include "write/knowledge/scan_parts.h"

namespace kernelpro {

namespace {

// Each unclosed statement is searched to the file's end; many mean that this is no Python.
constexpr int kMostUnclosed = 16;

std::size_t indentation(std::string_view line) {
  std::size_t n = 0;
  while (n < line.size() && (line[n] == ' ' || line[n] == '\t')) ++n;
  return n;
}

bool begins(std::string_view line, std::string_view word) {
  return line.substr(0, word.size()) == word;
}

struct Open {
  int chunk = -1;
  std::size_t indent = 0;
  bool type = false;
};

class PythonScanner {
 public:
  PythonScanner(std::string_view text, ScannedFile* file) : lines_(line_views(text)), file_(file) {}

  void run() {
    const int count = static_cast<int>(lines_.size());
    for (int i = 0; i < count; ++i) {
      const std::string_view line = trim(lines_[i]);
      if (!file_comment_.empty() && line.substr(0, 1) != "#") {
        append_doc(&file_->doc, clean_doc(file_comment_));
        file_comment_.clear();
      }
      if (line.empty()) continue;
      if (line[0] == '#') {
        if (comment_ < 0) comment_ = i;
        if (!seen_code_) file_comment_ += std::string(line) + "\n";
        continue;
      }
      close(i, indentation(lines_[i]));
      if (line[0] == '@') {
        if (comment_ < 0) comment_ = i;
        i = end_of_statement(i);
        continue;
      }
      const int end = end_of_statement(i);
      if (quote_at(line) == 0) {
        if (!seen_code_) append_doc(&file_->doc, text_of(i, end));
      } else {
        statement(i, end, line);
      }
      comment_ = -1;
      i = end;
    }
    close(count, 0);
  }

 private:
  static std::size_t quote_at(std::string_view line) {
    return std::min(line.find("\"\"\""), line.find("'''"));
  }

  // The last line of the statement that starts in line i: brackets, triple-quoted strings and
  // backslashes continue it. The line itself when a bracket or string stays open: the next
  // definition at the left margin ends the search, and after kMostUnclosed no line is continued.
  int end_of_statement(int i) {
    if (unclosed_ >= kMostUnclosed) return i;
    int brackets = 0;
    std::string_view string;  // the triple quotes that are open
    for (int k = i; k < static_cast<int>(lines_.size()); ++k) {
      const std::string_view line = lines_[k];
      if (k > i && string.empty() && (begins(line, "def ") || begins(line, "class "))) break;
      if (!read_line(line, &brackets, &string)) continue;
      if (brackets <= 0 && string.empty()) return k;
    }
    ++unclosed_;
    return i;
  }

  // Counts a line's open brackets, outside strings and comments; false when a backslash ends it.
  static bool read_line(std::string_view line, int* brackets, std::string_view* string) {
    for (std::size_t at = 0; at < line.size(); ++at) {
      const char c = line[at];
      if (!string->empty()) {
        if (c == '\\') {
          ++at;
        } else if (begins(line.substr(at), *string)) {
          *string = {};
          at += 2;
        }
        continue;
      }
      if (c == '#') return true;
      if (c == '\\' && at + 1 == line.size()) return false;
      if (c == '(' || c == '[' || c == '{') ++*brackets;
      if (c == ')' || c == ']' || c == '}') --*brackets;
      if (c != '"' && c != '\'') continue;
      const std::string_view mark = c == '"' ? "\"\"\"" : "'''";
      if (begins(line.substr(at), mark)) {
        *string = mark;
        at += 2;
        continue;
      }
      for (++at; at < line.size() && line[at] != c; ++at) at += line[at] == '\\' ? 1 : 0;
    }
    return true;
  }

  std::string text_of(int first, int last) const {
    std::string text;
    for (int i = first; i <= last && text.size() < 2 * kDocBytes; ++i) {
      text += replace_all(replace_all(std::string(trim(lines_[i])), "\"\"\"", ""), "'''", "");
      text += '\n';
    }
    return clean_doc(text);
  }

  // Closes everything indented as much as this line or more.
  void close(int line, std::size_t indent) {
    if (open_.empty() || open_.back().indent < indent) return;
    int last = line;
    while (last > 0 && trim(lines_[last - 1]).empty()) --last;
    while (!open_.empty() && open_.back().indent >= indent) {
      Chunk& chunk = file_->chunks[open_.back().chunk];
      chunk.last = std::max(chunk.first, last);
      open_.pop_back();
    }
  }

  void statement(int i, int end, std::string_view line) {
    seen_code_ = true;
    if (begins(line, "import ") || begins(line, "from ")) {
      const std::vector<std::string> parts = words(utf8_prefix(line, 300));
      if (parts.size() > 1) file_->includes.push_back(parts[1]);
      return;
    }
    const bool type = begins(line, "class ");
    std::string_view rest = line;
    if (begins(rest, "async ")) rest = trim(rest.substr(6));
    if (!type && !begins(rest, "def ")) {
      top_level_name(i, line);
      return;
    }
    rest = trim(rest.substr(type ? 6 : 4));
    const std::string name(identifier_at(rest, 0));
    if (name.empty()) return;
    file_->symbols.push_back({name, type ? "type" : "function", i + 1});
    // A nested function stays with its outer one.
    if (!open_.empty() && !open_.back().type) return;
    if (open_.size() >= kDeepest) return;
    Chunk chunk;
    chunk.kind = type ? "type" : "function";
    chunk.symbol = name;
    chunk.first = (comment_ >= 0 ? comment_ : i) + 1;
    chunk.last = i + 1;
    signature_and_doc(i, end, &chunk);
    open_.push_back({static_cast<int>(file_->chunks.size()), indentation(lines_[i]), type});
    file_->chunks.push_back(std::move(chunk));
  }

  void top_level_name(int i, std::string_view line) {
    const std::string_view name = identifier_at(line, 0);
    if (indentation(lines_[i]) > 0 || name.empty()) return;
    const std::string_view rest = trim(line.substr(name.size()));
    if (begins(rest, "=") && !begins(rest, "==")) {
      file_->symbols.push_back({std::string(name), "declaration", i + 1});
    }
  }

  void signature_and_doc(int i, int end, Chunk* chunk) {
    const int count = static_cast<int>(lines_.size());
    std::string signature;
    for (int k = i; k <= std::min(end, i + 60); ++k) {
      signature += std::string(utf8_prefix(lines_[k], 500)) + "\n";
    }
    chunk->signature = one_line(signature, kSignatureBytes);
    std::string comments;
    for (int c = chunk->first - 1; c < i; ++c) {
      if (trim(lines_[c]).substr(0, 1) == "#") comments += std::string(trim(lines_[c])) + "\n";
    }
    chunk->doc = clean_doc(comments);
    int k = end + 1;
    while (k < count && trim(lines_[k]).empty()) ++k;
    if (k >= count || quote_at(trim(lines_[k])) > 1) return;
    append_doc(&chunk->doc, text_of(k, end_of_statement(k)));
  }

  std::vector<std::string_view> lines_;
  ScannedFile* file_;
  std::vector<Open> open_;
  int comment_ = -1;
  std::string file_comment_;  // current block of comments, before any code
  bool seen_code_ = false;
  int unclosed_ = 0;  // statements without an end
};

}  // namespace

void scan_python(std::string_view text, ScannedFile* file) { PythonScanner(text, file).run(); }

void scan_markdown(std::string_view text, ScannedFile* file) {
  const std::vector<std::string_view> lines = line_views(text);
  bool fenced = false;
  int open = -1;
  for (int i = 0; i < static_cast<int>(lines.size()); ++i) {
    const std::string_view line = trim(lines[i]);
    const bool fence = begins(line, "```") || begins(line, "~~~");
    fenced ^= fence;
    if (fenced || fence) continue;
    std::size_t level = 0;
    while (level < line.size() && line[level] == '#') ++level;
    if (level > 0 && level <= 6 && level < line.size() && line[level] == ' ') {
      if (open >= 0) file->chunks[open].last = i;
      Chunk chunk;
      chunk.kind = "section";
      chunk.first = i + 1;
      chunk.last = static_cast<int>(lines.size());
      chunk.symbol = one_line(line.substr(level), 200);
      open = static_cast<int>(file->chunks.size());
      file->chunks.push_back(std::move(chunk));
      continue;
    }
    if (line.empty() || line[0] == '!' || line[0] == '<') continue;
    // A section's first paragraph describes it; the first of the page describes the page.
    if (open >= 0 && file->chunks[open].doc.size() < 400) {
      append_doc(&file->chunks[open].doc, one_line(line, 400));
    }
    if (file->doc.size() < 800) append_doc(&file->doc, clean_doc(utf8_prefix(line, 800)));
  }
}

}  // namespace kernelpro
