// SPDX-License-Identifier: Apache-2.0
#include "profile/places/line_text.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <memory>

#include "base/files.h"
#include "base/text.h"

namespace kernelpro {

namespace {

constexpr std::size_t kMostText = 160;

// The first instruction in the strings of a line of inline PTX, but for those that only set it up;
// "": none.
std::string ptx_of(std::string_view line) {
  static constexpr std::string_view kSetUp[] = {"setp", "selp", "mov", "cvta", "add", "shl"};
  bool inside = false;
  std::string plain;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '"') inside = !inside;
    const bool escape = line[i] == '\\';
    plain += inside && !escape && line[i] != '"' && line[i] != ';' ? line[i] : ' ';
    if (escape) ++i;
  }
  for (const std::string& word : words(plain)) {
    if (word[0] < 'a' || word[0] > 'z' || !contains(word, ".")) continue;
    const std::string root = word.substr(0, word.find('.'));
    if (std::find(std::begin(kSetUp), std::end(kSetUp), root) == std::end(kSetUp)) return word;
  }
  return "";
}

// Within an asm statement of several lines, whose strings and operands say little one by one: what
// it executes. "" elsewhere.
std::string asm_around(const LineText& text, const SourceLine& at) {
  constexpr int kMostLines = 12;
  const auto line = [&](int number) { return std::string(trim(text(at.file, number))); };
  const std::string own = line(at.line);
  if (!own.starts_with("\"") && !own.starts_with(":")) return "";
  int first = at.line;
  while (first > std::max(1, at.line - kMostLines) && !contains(line(first), "asm")) {
    --first;
    if (line(first).ends_with(";") || line(first).ends_with("}")) return "";
  }
  for (int number = first; number <= at.line + 2; ++number) {
    if (const std::string ptx = ptx_of(line(number)); !ptx.empty()) return "asm " + ptx;
    if (line(number).ends_with(");")) break;
  }
  return "";
}

}  // namespace

bool is_source(const std::string& name) {
  for (const char* end : {".cu", ".cuh", ".h", ".hpp", ".cpp", ".cc", ".cxx", ".py"}) {
    if (name.ends_with(end)) return name.find('/') == std::string::npos;
  }
  return false;
}

void add_text(const LineText& text, SourceLine* line) {
  if (!text) return;
  if (const std::string executed = asm_around(text, *line); !executed.empty()) {
    line->text = clip(executed, kMostText);
    return;
  }
  std::string whole(trim(text(line->file, line->line)));
  if (whole.starts_with("#pragma")) {  // code is attributed to one: with the line it stands for
    whole += " " + std::string(trim(text(line->file, line->line + 1)));
  }
  line->text = clip(std::string(trim(whole)), kMostText);
}

std::vector<std::string> compiled_lines(std::string_view text) {
  std::vector<std::string> numbered;
  for (std::string& each : lines(text)) {
    const std::string_view directive = trim(each);
    if (!directive.starts_with("#line ")) {
      numbered.push_back(std::move(each));
      continue;
    }
    const std::vector<std::string> named = words(directive);
    if (named.size() != 2) break;  // another file's lines follow
    std::size_t next = 0;
    std::from_chars(named[1].data(), named[1].data() + named[1].size(), next);
    if (next < 1 || next > numbered.size() + 1) break;  // not a number that this file can have
    numbered.resize(next - 1);
  }
  return numbered;
}

LineText lines_in(const std::string& folder) {
  auto known = std::make_shared<std::map<std::string, std::vector<std::string>>>();
  return [folder, known](const std::string& file, int line) -> std::string {
    if (!is_source(file) || line < 1) return "";
    auto found = known->find(file);
    if (found == known->end()) {
      constexpr std::int64_t kMostBytes = 4 << 20;
      const Result<std::string> text = read_file(join(folder, file), kMostBytes);
      found = known->emplace(file, compiled_lines(text ? *text : "")).first;
    }
    return static_cast<std::size_t>(line) <= found->second.size()
               ? found->second[static_cast<std::size_t>(line) - 1]
               : "";
  };
}

}  // namespace kernelpro
