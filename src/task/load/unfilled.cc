// SPDX-License-Identifier: Apache-2.0
#include "task/load/unfilled.h"

#include "base/text.h"

namespace kernelpro {

namespace {

constexpr int kShown = 8;

// The line's text after the mark, without comment delimiters.
std::string remark(std::string_view line) {
  std::string_view text = line.substr(line.find(kUnfilled) + kUnfilled.size());
  if (text.starts_with(":")) text.remove_prefix(1);
  text = trim(text);
  if (text.ends_with("*/")) text = trim(text.substr(0, text.size() - 2));
  return printable(text);
}

}  // namespace

Result<void> refuse_unfilled(std::string_view text, const std::string& path) {
  std::string found;
  int line_number = 0, count = 0;
  for (const std::string& line : lines(text)) {
    ++line_number;
    if (!contains(line, kUnfilled)) continue;
    ++count;
    if (count <= kShown) found += "\n    line " + std::to_string(line_number) + ": " + remark(line);
  }
  if (count == 0) return {};
  if (count > kShown) found += "\n    and " + std::to_string(count - kShown) + " more";
  return fail(ErrorKind::kBadInput,
              path + " has " + how_many(count, "place") + " to be filled in:" + found,
              "decide each, then remove the words " + std::string(kUnfilled) + " from its line");
}

}  // namespace kernelpro
