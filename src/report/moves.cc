// SPDX-License-Identifier: Apache-2.0
#include "report/moves.h"

#include <vector>

namespace kernelpro {

std::optional<WhatChanged> change_of(const StoredCandidate& candidate,
                                     const StoredCandidate& parent) {
  const Known& known = candidate.known;
  if (!candidate.evaluated || !parent.evaluated || known.id == parent.known.id) {
    return std::nullopt;
  }
  WhatChanged change =
      what_changed(parent.known.diagnosis, known.diagnosis, known.candidate.origin.answers,
                   drift_between(parent.known, known));
  if (!(change.before_us > 0) || !(change.after_us > 0)) return std::nullopt;
  return change;
}

std::string path_changes_text(const Story& story) {
  constexpr std::size_t kShown = 5;
  std::vector<std::string> all;
  for (const StoredCandidate* candidate : story.path) {
    const auto parent = story.by_id.find(candidate->known.candidate.origin.parent);
    if (parent == story.by_id.end()) continue;
    const auto change = change_of(*candidate, *parent->second);
    if (!change) continue;
    all.push_back(
        change_to_text(*change, "#" + std::to_string(candidate->known.candidate.origin.parent) +
                                    " to #" + std::to_string(candidate->known.id)));
  }
  if (all.empty()) return "";
  std::string text = "\nOn the way to the fastest:\n";
  const std::size_t first = all.size() > kShown ? all.size() - kShown : 0;
  if (first > 0) text += "(" + std::to_string(first) + " earlier changes are in the report)\n";
  for (std::size_t i = first; i < all.size(); ++i) text += all[i];
  return text;
}

}  // namespace kernelpro
