// SPDX-License-Identifier: Apache-2.0
#include "suite/rows.h"

#include <algorithm>

#include "base/text.h"

namespace kernelpro {

namespace {

// Escapes a cell's text: a bar would start another cell, a newline another row.
std::string plain(const std::string& cell) {
  return replace_all(replace_all(cell, "\n", " "), "|", "\\|");
}

}  // namespace

std::string MarkdownTable::text() const {
  std::vector<std::size_t> widths(rows_.front().size(), 3);
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], plain(row[i]).size());
    }
  }
  std::string text;
  for (std::size_t r = 0; r < rows_.size(); ++r) {
    for (std::size_t i = 0; i < widths.size(); ++i) {
      const std::string cell = plain(rows_[r][i]);
      text += "| " + cell + std::string(widths[i] - cell.size() + 1, ' ');
    }
    text += "|\n";
    if (r > 0) continue;
    for (const std::size_t width : widths) text += "|" + std::string(width + 2, '-');
    text += "|\n";
  }
  return text;
}

}  // namespace kernelpro
