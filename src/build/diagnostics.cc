// SPDX-License-Identifier: Apache-2.0
#include "build/diagnostics.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <set>

#include "base/text.h"
#include "build/diagnostics_lines.h"

namespace kernelpro {

namespace {

constexpr std::size_t kMaxErrors = 6;
constexpr std::size_t kMaxLine = 300;
constexpr int kMaxNotes = 1;      // per diagnostic, with their source lines
constexpr int kMaxBacktrace = 3;  // lines: the innermost ones and the outermost
constexpr int kMaxOther = 6;      // source lines, carets, lists of types

// A diagnostic: its head line, the lines before it and the lines below it.
struct Entry {
  LineKind kind = LineKind::kOther;
  std::string head;
  std::vector<std::string> lead;  // backtraces come before errors (gcc) or after them (nvcc)
  std::vector<std::string> body;
};

std::vector<Entry> entries_of(const std::vector<std::string>& all) {
  std::vector<Entry> entries;
  std::vector<std::string> lead;
  for (const std::string& raw : all) {
    const LineKind kind = line_kind(raw);
    if (kind == LineKind::kNoise) continue;
    const std::string line = readable_line(raw);
    const bool after = !entries.empty() && !line.empty() && line[0] == ' ';
    if (kind == LineKind::kError || kind == LineKind::kWarning) {
      entries.push_back({kind, line, std::move(lead), {}});
      lead.clear();
    } else if (kind == LineKind::kLeadIn || (kind == LineKind::kBacktrace && !after)) {
      lead.push_back(line);
    } else if (entries.empty()) {
      entries.push_back({LineKind::kOther, line, {}, {}});
    } else {
      entries.back().body.push_back(line);
    }
  }
  if (!lead.empty()) entries.push_back({LineKind::kOther, join_text(lead, "\n"), {}, {}});
  return entries;
}

std::string shortened(const std::string& line) {
  return line.size() <= kMaxLine ? line : line.substr(0, kMaxLine) + " ...";
}

// Keeps a backtrace's first lines and its last, which is in the user's code.
void add_backtrace(const std::vector<std::string>& trace, std::string* text) {
  const int count = static_cast<int>(trace.size());
  for (int i = 0; i < count; ++i) {
    if (count > kMaxBacktrace && i == kMaxBacktrace - 1) {
      const int left_out = count - kMaxBacktrace;
      if (left_out > 0) *text += "            (" + std::to_string(left_out) + " more)\n";
      i = count - 1;
    }
    *text += shortened(trace[static_cast<std::size_t>(i)]) + "\n";
  }
}

std::string text_of(const Entry& entry) {
  std::string text;
  add_backtrace(entry.lead, &text);
  text += shortened(entry.head) + "\n";
  std::vector<std::string> body = entry.body, trace;
  for (std::size_t i = 0; i < body.size(); ++i) {
    std::string none;
    restore_source_line(&body[i], i + 1 < body.size() ? &body[i + 1] : &none);
  }
  int notes = 0, others = 0;
  for (const std::string& line : body) {
    const LineKind kind = line_kind(line);
    if (trim(line).empty()) continue;
    if (kind == LineKind::kBacktrace) {
      trace.push_back(line);
      continue;
    }
    if (kind == LineKind::kNote) ++notes;
    if (notes > kMaxNotes) continue;
    if (kind != LineKind::kNote && ++others > kMaxOther) continue;
    text += shortened(line) + "\n";
  }
  add_backtrace(trace, &text);
  return text;
}

// Header errors after one in the user's file are mostly follow-ons, for instance of an open brace.
bool follows(const Entry& entry, const std::vector<const Entry*>& chosen) {
  return in_system_header(entry.head) && entry.lead.empty() && entry.body.size() < 5 &&
         std::any_of(chosen.begin(), chosen.end(), [](const Entry* earlier) {
           return !in_system_header(earlier->head) && earlier->kind == LineKind::kError;
         });
}

std::vector<const Entry*> choose(const std::vector<Entry>& entries, std::size_t* left_out) {
  std::vector<const Entry*> chosen;
  std::set<std::string> seen;
  const bool errors = std::any_of(entries.begin(), entries.end(),
                                  [](const Entry& e) { return e.kind == LineKind::kError; });
  for (const LineKind kind : {LineKind::kError, LineKind::kWarning, LineKind::kOther}) {
    // Other output is useful only if nothing else explains the failure.
    if (errors && kind != LineKind::kError) break;
    for (const Entry& entry : entries) {
      if (entry.kind != kind || !seen.insert(entry.head).second || follows(entry, chosen)) continue;
      if (kind == LineKind::kError && chosen.size() >= kMaxErrors) {
        ++*left_out;
      } else {
        chosen.push_back(&entry);
      }
    }
  }
  return chosen;
}

}  // namespace

std::string trim_diagnostics(std::string_view log, const std::vector<std::string>& hidden_folders,
                             std::size_t max_bytes) {
  std::string text = printable(log);
  for (const std::string& folder : hidden_folders) {
    if (folder.empty()) continue;
    text = replace_all(text, folder + "/", "");
    text = replace_all(text, folder, ".");
  }
  const std::vector<Entry> entries = entries_of(lines(text));
  std::size_t left_out = 0;
  const std::vector<const Entry*> chosen = choose(entries, &left_out);
  std::string result;
  // Keep one diagnostic from crowding out the others.
  const std::size_t max_entry = max_bytes / 2;
  for (const Entry* entry : chosen) {
    if (result.size() >= max_bytes) {
      if (entry->kind == LineKind::kError) ++left_out;
      continue;
    }
    result += clip(text_of(*entry), std::min(max_entry, max_bytes - result.size()));
    if (!result.empty() && result.back() != '\n') result += '\n';
  }
  if (left_out == 1) result += "(1 more error)\n";
  if (left_out > 1) result += "(" + std::to_string(left_out) + " more errors)\n";
  if (chosen.empty()) result = clip(text, max_bytes);
  // Trim only the end: the first line's indentation aligns the caret below it.
  while (!result.empty() && (result.back() == '\n' || result.back() == ' ')) result.pop_back();
  return result;
}

std::string with_source_lines(std::string_view log, std::string_view ptx) {
  const std::vector<std::string> code = lines(ptx);
  std::vector<std::string> files;
  std::string result;
  for (const std::string& line : lines(log)) {
    const std::size_t at = line.find(", line ");
    const std::size_t error = line.find("error");
    const int number = at == std::string::npos ? 0 : std::atoi(line.c_str() + at + 7);
    const bool ours = line.starts_with("ptxas ") && error != std::string::npos && number > 0 &&
                      static_cast<std::size_t>(number) <= code.size();
    int file = 0, source = 0, found_file = 0, found = 0;
    for (int i = 0; ours && i < number; ++i) {
      const std::string text(trim(code[static_cast<std::size_t>(i)]));
      if (std::sscanf(text.c_str(), ".loc %d %d", &file, &source) == 2) {
        found_file = file;
        found = source;
      }
    }
    const std::size_t colon = ours ? line.find(':', error) : std::string::npos;
    if (found == 0 || colon == std::string::npos) {
      result += line + "\n";
      continue;
    }
    std::string name = "line";
    const std::string mark = ".file\t" + std::to_string(found_file) + " \"";
    const std::size_t declared = ptx.find(mark);
    if (declared != std::string_view::npos) {
      const std::size_t begin = declared + mark.size();
      name = std::string(ptx.substr(begin, ptx.find('"', begin) - begin));
      name = name.substr(name.rfind('/') + 1);
    }
    result += name + "(" + std::to_string(found) +
              "): error: ptxas: " + std::string(trim(std::string_view(line).substr(colon + 1))) +
              "\n    " + std::string(trim(code[static_cast<std::size_t>(number - 1)])) + "\n";
  }
  return result;
}

std::string with_shown_lines(std::string_view log, std::string_view file, std::string_view source) {
  const std::vector<std::string> code = lines(source);
  std::string result;
  bool ours = false;
  for (const std::string& line : lines(log)) {
    const LineKind kind = line_kind(line);
    if (kind == LineKind::kError || kind == LineKind::kWarning || kind == LineKind::kNote) {
      const std::string_view place = std::string_view(line).substr(0, line.find(':'));
      ours = place == file || place.ends_with("/" + std::string(file));
    }
    // "   12 |   foo(1);"
    const std::size_t bar = line.find(" | ");
    const int number = bar == std::string::npos ? 0 : std::atoi(line.c_str());
    const bool shows = ours && number > 0 && static_cast<std::size_t>(number) <= code.size() &&
                       line.find_first_not_of(" 0123456789") == bar + 1;
    result += shows ? line.substr(0, bar + 3) + code[static_cast<std::size_t>(number - 1)] : line;
    result += '\n';
  }
  return result;
}

}  // namespace kernelpro
