// SPDX-License-Identifier: Apache-2.0
#include "write/knowledge/scan.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstring>

#include "base/text.h"
#include "write/knowledge/scan_parts.h"

namespace kernelpro {

namespace {

constexpr int kBlockLines = 60;
constexpr int kHeadLines = 60;

struct Ending {
  std::string_view text;
  SourceKind language;
};
constexpr std::array<Ending, 22> kEndings = {{
    {".h", SourceKind::kCpp},     {".hpp", SourceKind::kCpp},    {".hh", SourceKind::kCpp},
    {".hxx", SourceKind::kCpp},   {".inl", SourceKind::kCpp},    {".c", SourceKind::kCpp},
    {".cc", SourceKind::kCpp},    {".cpp", SourceKind::kCpp},    {".cxx", SourceKind::kCpp},
    {".inc", SourceKind::kCpp},   {".cu", SourceKind::kCuda},    {".cuh", SourceKind::kCuda},
    {".py", SourceKind::kPython}, {".pyi", SourceKind::kPython}, {".md", SourceKind::kMarkdown},
    {".rst", SourceKind::kText},  {".txt", SourceKind::kText},   {".cmake", SourceKind::kText},
    {".toml", SourceKind::kText}, {".ptx", SourceKind::kText},   {".sh", SourceKind::kText},
    {".metal", SourceKind::kCpp},
}};

bool ends_with(std::string_view text, std::string_view end) {
  return text.size() > end.size() && text.substr(text.size() - end.size()) == end;
}

bool blank(std::string_view line) { return trim(line).empty(); }

// A line of markers only, or a Doxygen command without text.
bool is_ruler(std::string_view line) {
  return std::none_of(line.begin(), line.end(),
                      [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; });
}

std::string_view without_marks(std::string_view line) {
  line = trim(line);
  while (!line.empty() && std::strchr("/*!<#", line.front()) != nullptr) line.remove_prefix(1);
  while (ends_with(line, "*/")) line.remove_suffix(2);
  line = trim(line);
  for (const std::string_view command : {"\\file", "\\brief", "@file", "@brief"}) {
    if (line.substr(0, command.size()) == command) line = trim(line.substr(command.size()));
  }
  return line;
}

// A phrase of every paragraph of the usual licences: their paragraphs often stand in comments
// apart.
bool is_of_licence(std::string_view line) {
  const std::string small = small_letters(utf8_prefix(line, 400));
  for (const std::string_view phrase : {"copyright",
                                        "all rights reserved",
                                        "spdx-license",
                                        "redistribution and use in source",
                                        "redistributions of source",
                                        "redistributions in binary",
                                        "neither the name of",
                                        "this software is provided",
                                        "the software is provided",
                                        "permission is hereby granted",
                                        "licensed under",
                                        "copy of the license",
                                        "see the license for",
                                        "see license for",
                                        "unless required by applicable law",
                                        "license agreement",
                                        "in no event shall",
                                        "intellectual property",
                                        "without warranties",
                                        "end user license",
                                        "license file",
                                        "provided under the license",
                                        "governed by the"}) {
    if (contains(small, phrase)) return true;
  }
  return false;
}

// Lines outside all chunks become blocks.
void add_blocks(const std::vector<std::string_view>& lines, ScannedFile* file) {
  const std::vector<int> owner = owners(*file);
  int first = -1;
  int full = 0;
  const auto flush = [&](int end) {
    if (first >= 0 && full > 0) {
      Chunk chunk;
      chunk.first = first + 1;
      chunk.last = end;
      chunk.kind = "block";
      file->chunks.push_back(std::move(chunk));
    }
    first = -1;
    full = 0;
  };
  for (int i = 0; i < file->lines; ++i) {
    const bool taken = owner[i] >= 0;
    if (taken || (first >= 0 && i - first >= kBlockLines)) flush(i);
    if (taken) continue;
    if (first < 0 && blank(lines[i])) continue;
    if (first < 0) first = i;
    if (!is_ruler(lines[i]) && trim(lines[i]).substr(0, 2) != "//") ++full;
  }
  flush(file->lines);
}

}  // namespace

SourceKind source_kind_of(std::string_view path) {
  for (const Ending& ending : kEndings) {
    if (ends_with(path, ending.text)) return ending.language;
  }
  return SourceKind::kNone;
}

std::string_view source_kind_name(SourceKind language) {
  switch (language) {
    case SourceKind::kCpp:
      return "c++";
    case SourceKind::kCuda:
      return "cuda";
    case SourceKind::kPython:
      return "python";
    case SourceKind::kMarkdown:
      return "markdown";
    case SourceKind::kText:
      return "text";
    case SourceKind::kNone:
      break;
  }
  return "none";
}

bool is_binary(std::string_view text) {
  return text.substr(0, 8192).find('\0') != std::string_view::npos;
}

std::vector<std::string_view> line_views(std::string_view text) {
  std::vector<std::string_view> views;
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, end - at);
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    views.push_back(line);
    at = end + 1;
  }
  return views;
}

std::string one_line(std::string_view text, std::size_t max_bytes) {
  std::string out;
  bool space = false;
  for (const char c : text) {
    if (std::isspace(static_cast<unsigned char>(c)) != 0 || c == '\0') {
      space = !out.empty();
      continue;
    }
    if (out.size() + 1 >= max_bytes) {
      const std::size_t full = out.size();
      out += c;  // only to see whether the cut splits a character
      return std::string(utf8_prefix(out, full)) + "...";
    }
    if (space) out += ' ';
    space = false;
    out += c;
  }
  return out;
}

std::string clean_doc(std::string_view comment) {
  std::string doc;
  std::string paragraph;
  bool licence = false;
  const auto flush = [&] {
    if (!licence) append_doc(&doc, paragraph);
    paragraph.clear();
    licence = false;
  };
  for (const std::string_view line : line_views(comment)) {
    const std::string_view words = without_marks(line);
    if (is_ruler(words)) {
      flush();
      continue;
    }
    licence = licence || is_of_licence(words);
    if (paragraph.size() + words.size() > kDocBytes) continue;
    if (!paragraph.empty()) paragraph += '\n';
    paragraph += words;
  }
  flush();
  return doc;
}

void append_doc(std::string* doc, const std::string& more) {
  if (more.empty() || doc->size() + more.size() > kDocBytes) return;
  if (!doc->empty()) *doc += '\n';
  *doc += more;
}

std::vector<int> owners(const ScannedFile& file) {
  std::vector<int> owner(static_cast<std::size_t>(file.lines), -1);
  for (std::size_t i = 0; i < file.chunks.size(); ++i) {
    const Chunk& chunk = file.chunks[i];
    for (int line = std::max(chunk.first, 1); line <= std::min(chunk.last, file.lines); ++line) {
      owner[line - 1] = static_cast<int>(i);
    }
  }
  return owner;
}

ScannedFile scan(SourceKind language, std::string_view text) {
  ScannedFile file;
  const std::vector<std::string_view> lines = line_views(text);
  file.lines = static_cast<int>(lines.size());
  if (lines.empty()) return file;
  // Filled in below; it comes first so that everything inside it comes later.
  file.chunks.emplace_back();
  file.chunks[0].last = 0;
  file.chunks[0].kind = "file";
  switch (language) {
    case SourceKind::kCpp:
    case SourceKind::kCuda:
      scan_cpp(text, &file);
      break;
    case SourceKind::kPython:
      scan_python(text, &file);
      break;
    case SourceKind::kMarkdown:
      scan_markdown(text, &file);
      break;
    case SourceKind::kText:
    case SourceKind::kNone:
      break;
  }
  for (Chunk& chunk : file.chunks) {
    // Chunks still open at the end end there.
    chunk.first = std::clamp(chunk.first, 1, file.lines);
    if (&chunk != &file.chunks[0]) chunk.last = std::clamp(chunk.last, chunk.first, file.lines);
  }
  int head = std::min(file.lines, kHeadLines);
  for (std::size_t i = 1; i < file.chunks.size(); ++i) {
    head = std::min(head, file.chunks[i].first - 1);
  }
  file.chunks[0].last = std::max(head, 1);
  file.chunks[0].doc = file.doc;
  add_blocks(lines, &file);
  return file;
}

}  // namespace kernelpro
