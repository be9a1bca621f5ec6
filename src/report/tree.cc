// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "base/text.h"
#include "report/dead_ends.h"
#include "report/html.h"

namespace kernelpro {

namespace {

struct Placed {
  const StoredCandidate* candidate = nullptr;
  std::int64_t parent = 0;
  int depth = 0;
  double row = 0;
};

using Children = std::map<std::int64_t, std::vector<std::int64_t>>;

// Leaves take rows in order; a parent is centered on its children. Iterative, because a tuner's
// chain may be a thousand deep. A parent that is unknown or would form a cycle is ignored.
class Layout {
 public:
  explicit Layout(const Story& story) {
    for (const auto& [id, candidate] : story.by_id) {
      const std::int64_t parent = candidate->known.candidate.origin.parent;
      const bool known = parent < id && story.by_id.contains(parent);
      placed_[id] = {candidate, known ? parent : 0, 0, 0};
      children_[known ? parent : 0].push_back(id);
    }
    place();
  }
  const std::map<std::int64_t, Placed>& placed() const { return placed_; }
  int depth() const { return depth_; }
  double rows() const { return rows_; }

 private:
  void place() {
    std::vector<std::pair<std::int64_t, bool>> stack;
    const auto push_children = [&](std::int64_t id) {
      const auto& list = children_[id];
      for (auto it = list.rbegin(); it != list.rend(); ++it) stack.emplace_back(*it, false);
    };
    push_children(0);
    while (!stack.empty()) {
      const auto [id, done] = stack.back();
      stack.pop_back();
      Placed& node = placed_[id];
      const auto& list = children_[id];
      if (done) {
        node.row = (placed_[list.front()].row + placed_[list.back()].row) / 2;
        continue;
      }
      node.depth = node.parent == 0 ? 0 : placed_[node.parent].depth + 1;
      depth_ = std::max(depth_, node.depth);
      if (list.empty()) {
        node.row = rows_++;
        continue;
      }
      stack.emplace_back(id, true);
      push_children(id);
    }
  }

  std::map<std::int64_t, Placed> placed_;
  Children children_;
  int depth_ = 0;
  double rows_ = 0;
};

using Reasons = std::map<std::int64_t, std::string>;

std::string title_of(const StoredCandidate& candidate, const Story& story, const Reasons& dead) {
  const Known& known = candidate.known;
  std::string title = "#" + std::to_string(known.id);
  if (!candidate.evaluated) return title + " waiting";
  const double us = score_us(known.evaluation);
  title += us > 0 ? " " + human_us(us) : " " + outcome_name(known.evaluation.outcome);
  if (const double speedup = story.speedup_of(known.id); speedup > 0) {
    title += ", " + speedup_text(speedup);
  }
  if (const auto reason = dead.find(known.id); reason != dead.end()) {
    title += "\ndead end: " + reason->second;
  }
  if (!known.candidate.origin.idea.empty()) {
    title += "\n" + idea_text(known.candidate.origin).substr(0, 200);
  }
  return title;
}

}  // namespace

std::string search_tree(const RunView& view, const Story& story) {
  if (view.candidates.empty()) return "<p class=\"quiet\">No candidates yet.</p>";
  const Layout layout(story);
  const double row = layout.rows() > 200 ? 8 : layout.rows() > 60 ? 11 : 16;
  const double column = std::clamp(880.0 / std::max(1, layout.depth()), 26.0, 190.0);
  const double width = 40 + column * layout.depth() + 40;
  const double height = 24 + row * std::max(1.0, layout.rows());
  const auto x = [&](const Placed& p) { return 24 + column * p.depth; };
  const auto y = [&](const Placed& p) { return 16 + row * p.row; };
  std::set<std::int64_t> on_path;
  for (const StoredCandidate* step : story.path) on_path.insert(step->known.id);

  const Reasons dead = dead_ends(view);
  std::string edges, best_edges, nodes;
  for (const auto& [id, node] : layout.placed()) {
    if (node.parent != 0) {
      const Placed& parent = layout.placed().at(node.parent);
      const std::string middle = coordinate((x(parent) + x(node)) / 2);
      const bool best = on_path.contains(id);
      (best ? best_edges : edges) +=
          "<path class=\"edge" + std::string(best ? " on-path" : "") + "\" d=\"M" +
          coordinate(x(parent)) + " " + coordinate(y(parent)) + " C" + middle + " " +
          coordinate(y(parent)) + " " + middle + " " + coordinate(y(node)) + " " +
          coordinate(x(node)) + " " + coordinate(y(node)) + "\"/>";
    }
    const std::string css = outcome_class(*node.candidate, story);
    const double radius = stands_out(*node.candidate, story) ? 6.5 : row < 10 ? 3 : 4.2;
    nodes += "<circle class=\"node " + css + (dead.contains(id) ? " dead" : "") + "\" data-id=\"" +
             std::to_string(id) + "\" cx=\"" + coordinate(x(node)) + "\" cy=\"" +
             coordinate(y(node)) + "\" r=\"" + coordinate(radius) + "\"><title>" +
             escape(title_of(*node.candidate, story, dead)) + "</title></circle>";
  }
  return "<div class=\"scroll tree-box\"><svg class=\"tree\" id=\"tree\" width=\"" +
         coordinate(width) + "\" height=\"" + coordinate(height) + "\" viewBox=\"0 0 " +
         coordinate(width) + " " + coordinate(height) +
         "\" role=\"img\" aria-label=\"search tree\">" + edges + best_edges + nodes +
         "</svg></div><div id=\"picked\" class=\"picked quiet\">Select a node to see its "
         "candidate.</div>";
}

}  // namespace kernelpro
