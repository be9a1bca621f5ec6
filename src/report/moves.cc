// SPDX-License-Identifier: Apache-2.0
// What changes did: the accounts of parents and children side by side.
#include <optional>
#include <string>
#include <vector>

#include "base/text.h"
#include "core/finding/change.h"
#include "report/html.h"
#include "report/view.h"

namespace kernelpro {

namespace {

std::string promise_html(const WhatChanged& change) {
  if (change.answers.empty()) return "";
  std::string html = "; it answers " + escape(change.answers.text());
  if (change.promised > 1) html += ", which promised " + speedup_text(change.promised);
  return html;
}

std::string moved_us(const MovedPart& part) {
  const double us = part.after_us - part.before_us;
  return (us < 0 ? "-" : "+") + human_us(us < 0 ? -us : us);
}

}  // namespace

std::optional<WhatChanged> change_of(const StoredCandidate& candidate, const Story& story) {
  const Known& known = candidate.known;
  const auto parent = story.by_id.find(known.candidate.origin.parent);
  if (parent == story.by_id.end() || !candidate.evaluated || parent->second == &candidate) {
    return std::nullopt;
  }
  WhatChanged change =
      what_changed(parent->second->known.diagnosis, known.diagnosis, known.candidate.origin.answers,
                   drift_between(parent->second->known, known));
  if (!(change.before_us > 0) || !(change.after_us > 0)) return std::nullopt;
  return change;
}

std::string change_html(const WhatChanged& change) {
  std::string html = "<p>" + escape(human_us(change.before_us)) + " became " +
                     escape(human_us(change.after_us)) + " (" +
                     speedup_text(change.before_us / change.after_us) + ")" + promise_html(change) +
                     ".</p>";
  if (change.moved.empty()) {
    return html + "<p class=\"quiet\">No part of the time moved by 2 % or more.</p>";
  }
  html +=
      "<div class=\"scroll\"><table class=\"account\"><thead><tr><th>part of the time</th>"
      "<th>before</th><th>after</th><th>moved</th></tr></thead><tbody>";
  for (const MovedPart& part : change.moved) {
    html += "<tr><td>" + escape(part_words(part.kind, part.stall)) + "</td><td class=\"num\">" +
            escape(human_us(part.before_us)) + "</td><td class=\"num\">" +
            escape(human_us(part.after_us)) + "</td><td class=\"num\">" + escape(moved_us(part)) +
            "</td></tr>";
  }
  return html + "</tbody></table></div>";
}

std::string path_changes(const Story& story) {
  std::string html;
  for (const StoredCandidate* candidate : story.path) {
    const auto change = change_of(*candidate, story);
    if (!change) continue;
    const std::string id = std::to_string(candidate->known.id);
    html += "<h3><a href=\"#c" + id + "\">#" + id + "</a>, from #" +
            std::to_string(candidate->known.candidate.origin.parent) + "</h3>" +
            change_html(*change);
  }
  return html;
}

std::string path_changes_text(const Story& story) {
  constexpr std::size_t kShown = 5;
  std::vector<std::string> all;
  for (const StoredCandidate* candidate : story.path) {
    const auto change = change_of(*candidate, story);
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
