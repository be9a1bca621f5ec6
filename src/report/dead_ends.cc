// SPDX-License-Identifier: Apache-2.0
#include "report/dead_ends.h"

#include <algorithm>

namespace kernelpro {

namespace {

constexpr std::size_t kIdsShown = 8;  // candidates of one reason

}  // namespace

std::map<std::int64_t, std::string> dead_ends(const RunView& view) {
  std::map<std::int64_t, std::string> reasons;
  for (const SearchNode& node : view.nodes) {
    if (!node.reason.empty()) reasons[node.id] = node.reason;
  }
  return reasons;
}

std::string dead_end_lines(const RunView& view) {
  std::map<std::string, std::vector<std::int64_t>> by_reason;
  std::size_t count = 0;
  for (const auto& [id, reason] : dead_ends(view)) {
    by_reason[reason].push_back(id);
    ++count;
  }
  if (count == 0) return "";
  std::string text = "nothing more is tried below " + std::to_string(count) + " of " +
                     std::to_string(view.nodes.size()) + " candidates:\n";
  std::vector<std::pair<std::string, std::vector<std::int64_t>>> rows(by_reason.begin(),
                                                                      by_reason.end());
  std::stable_sort(rows.begin(), rows.end(),
                   [](const auto& a, const auto& b) { return a.second.size() > b.second.size(); });
  for (const auto& [reason, ids] : rows) {
    text += "  " + std::to_string(ids.size()) + ": " + reason + " (";
    for (std::size_t i = 0; i < std::min(ids.size(), kIdsShown); ++i) {
      text += (i == 0 ? "#" : ", #") + std::to_string(ids[i]);
    }
    text += ids.size() > kIdsShown ? ", ...)\n" : ")\n";
  }
  return text;
}

}  // namespace kernelpro
