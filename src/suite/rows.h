// SPDX-License-Identifier: Apache-2.0
// A Markdown table whose columns are aligned.
#pragma once

#include <string>
#include <vector>

namespace kernelpro {

class MarkdownTable {
 public:
  explicit MarkdownTable(std::vector<std::string> head) { rows_.push_back(std::move(head)); }
  // REQUIRES: as many cells as in the head.
  void add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  bool empty() const { return rows_.size() < 2; }
  std::string text() const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace kernelpro
