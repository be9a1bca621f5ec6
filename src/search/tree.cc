// SPDX-License-Identifier: Apache-2.0
#include "search/tree.h"

#include "base/error.h"
#include "core/machine/machine.h"

namespace kernelpro {

double seed_temperature(const SearchParameters& parameters, int before) {
  const std::vector<double>& all = parameters.temperatures;
  return all.empty() ? -1 : all[static_cast<std::size_t>(before) % all.size()];
}

bool for_good(const SearchParameters& parameters, const NodeResult& result) {
  // A ceiling that was beaten is invalid.
  if (result.fraction > kBeyondCeiling) return false;
  return result.fraction <= 0 || result.fraction >= parameters.ceiling;
}

int TreeSearch::index(std::int64_t id) const {
  const auto it = by_id_.find(id);
  KP_ASSERT(it != by_id_.end());
  return it->second;
}

void TreeSearch::insert(int parent, std::int64_t id, const NodeResult& result) {
  KP_ASSERT(by_id_.find(id) == by_id_.end());
  Node node;
  node.id = id;
  node.parent = parent;
  node.stop = result.stop;
  const bool correct = result.correct && result.time_us > 0;
  if (correct) node.time_us = result.time_us;
  // A failed root must stay open, being all there is to build on; any other failure is a wall.
  node.open = (correct || parent < 0) && !(result.stop && for_good(p_, result));
  const int self = static_cast<int>(nodes_.size());
  nodes_.push_back(node);
  by_id_[id] = self;
  if (parent >= 0) ++nodes_[parent].children;
  if (correct && node.open) (node.stop ? stopped_ : ranked_).emplace(node.time_us, self);
  added(self);
}

void TreeSearch::add_root(std::int64_t id, const NodeResult& result) {
  KP_ASSERT(nodes_.empty());
  insert(-1, id, result);
}

std::optional<Turn> TreeSearch::start() {
  if (nodes_.empty()) return std::nullopt;
  const bool seed = seeding();
  const int at = seed ? 0 : choose();
  if (at < 0) return std::nullopt;
  Turn turn = seed ? Turn{0, 1, 1, seed_temperature(p_, tries(0))} : ask();
  turn.parent = nodes_[at].id;
  begin(turn.parent);
  return turn;
}

void TreeSearch::begin(std::int64_t parent) {
  ++nodes_[index(parent)].in_flight;
  ++in_flight_;
}

void TreeSearch::cancel(std::int64_t parent) {
  Node& node = nodes_[index(parent)];
  KP_ASSERT(node.in_flight > 0);
  --node.in_flight;
  --in_flight_;
}

void TreeSearch::close(std::int64_t id) {
  const int at = index(id);
  nodes_[at].open = false;
  ranked_.erase({nodes_[at].time_us, at});
  stopped_.erase({nodes_[at].time_us, at});
}

void TreeSearch::finalize(std::int64_t parent, std::int64_t child, const NodeResult& result) {
  cancel(parent);
  restore(parent, child, result);
}

void TreeSearch::restore(std::int64_t parent, std::int64_t child, const NodeResult& result) {
  insert(index(parent), child, result);
}

int TreeSearch::fastest() const {
  if (!ranked_.empty()) return ranked_.begin()->second;
  if (nodes_[0].open && !nodes_[0].stop) return 0;
  return stopped_.empty() ? -1 : stopped_.begin()->second;
}

std::vector<SearchNode> TreeSearch::nodes() const {
  std::vector<SearchNode> all;
  all.reserve(nodes_.size());
  double best = 0;
  for (const Node& node : nodes_) {
    if (node.time_us > 0 && (best == 0 || node.time_us < best)) best = node.time_us;
  }
  for (const Node& node : nodes_) {
    std::string reason;
    if (node.time_us == 0 && node.parent >= 0) {
      reason = kFailedReason;
    } else if (node.stop) {
      reason = kStopReason;
    } else if (!node.open) {
      reason = kExhaustedReason;
    }
    all.push_back({node.id, node.parent < 0 ? 0 : nodes_[node.parent].id, 1 + node.children,
                   node.in_flight, node.time_us > 0 ? best / node.time_us : 0, !node.open,
                   std::move(reason)});
  }
  return all;
}

}  // namespace kernelpro
