// SPDX-License-Identifier: Apache-2.0
#include "search/mcts.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>

#include "base/error.h"

namespace kernelpro {

namespace {

struct Node {
  std::int64_t id = 0;
  int parent = -1;            // index
  std::vector<int> children;  // indices, in order of evaluation
  bool correct = false;
  bool closed = false;
  double log_time = 0;  // when correct
  // Of the node and everything below it.
  int visits = 0;
  int in_flight = 0;
  int correct_visits = 0;
  double sum_log_time = 0;
  double best_log_time = std::numeric_limits<double>::infinity();
};

class Mcts : public Search {
 public:
  explicit Mcts(const MctsParameters& parameters) : p_(parameters) {}

  std::string name() const override { return "mcts"; }
  void add_root(std::int64_t id, const NodeResult& result) override;
  std::optional<std::int64_t> start() override;
  void cancel(std::int64_t parent) override;
  void close(std::int64_t id) override;
  void finalize(std::int64_t parent, std::int64_t child, const NodeResult& result) override;
  void restore(std::int64_t parent, std::int64_t child, const NodeResult& result) override;
  std::vector<SearchNode> nodes() const override;

 private:
  void insert(std::int64_t id, int parent, const NodeResult& result);
  void add_in_flight(int node, int change);
  int index(std::int64_t id) const;
  double reward(double log_time) const;
  double own_reward(const Node& node) const { return node.correct ? reward(node.log_time) : 0; }
  double mean(const Node& node) const;
  double upper_bound(const Node& node, int parent_visits) const;
  bool pruned(const Node& node) const;
  bool may_widen(const Node& node) const;
  bool open_below(int node, bool with_pruned) const;
  int descend(bool with_pruned) const;

  MctsParameters p_;
  std::vector<Node> nodes_;
  std::unordered_map<std::int64_t, int> by_id_;
  double fastest_ = std::numeric_limits<double>::infinity();
  double slowest_ = -std::numeric_limits<double>::infinity();
};

int Mcts::index(std::int64_t id) const {
  const auto it = by_id_.find(id);
  KP_ASSERT(it != by_id_.end());
  return it->second;
}

void Mcts::insert(std::int64_t id, int parent, const NodeResult& result) {
  KP_ASSERT(by_id_.find(id) == by_id_.end());
  Node node;
  node.id = id;
  node.parent = parent;
  node.correct = result.correct && result.time_us > 0;
  // A failed root is all there is to build on; any other failure is a wall.
  node.closed = result.stop || (!node.correct && parent >= 0);
  if (node.correct) {
    node.log_time = std::log(result.time_us);
    fastest_ = std::min(fastest_, node.log_time);
    slowest_ = std::max(slowest_, node.log_time);
  }
  const double log_time = node.log_time;
  const bool correct = node.correct;
  const int self = static_cast<int>(nodes_.size());
  nodes_.push_back(std::move(node));
  by_id_[id] = self;
  if (parent >= 0) nodes_[parent].children.push_back(self);
  for (int at = self; at >= 0; at = nodes_[at].parent) {
    Node& above = nodes_[at];
    ++above.visits;
    if (!correct) continue;
    ++above.correct_visits;
    above.sum_log_time += log_time;
    above.best_log_time = std::min(above.best_log_time, log_time);
  }
}

void Mcts::add_in_flight(int node, int change) {
  for (; node >= 0; node = nodes_[node].parent) {
    nodes_[node].in_flight += change;
    KP_ASSERT(nodes_[node].in_flight >= 0);
  }
}

void Mcts::add_root(std::int64_t id, const NodeResult& result) {
  KP_ASSERT(nodes_.empty());
  insert(id, -1, result);
}

double Mcts::reward(double log_time) const {
  if (slowest_ <= fastest_) return 0.5;  // nothing to compare with yet
  return (slowest_ - log_time) / (slowest_ - fastest_);
}

double Mcts::mean(const Node& node) const {
  if (node.correct_visits == 0) return 0;
  // The reward is linear in the logarithm, so that the mean can be taken first.
  const double mean_log = node.sum_log_time / node.correct_visits;
  return reward(mean_log) * node.correct_visits / (node.visits + node.in_flight);
}

double Mcts::upper_bound(const Node& node, int parent_visits) const {
  const double best = node.correct_visits == 0 ? 0 : reward(node.best_log_time);
  const double value = p_.best_share * best + (1 - p_.best_share) * mean(node);
  const double visits = node.visits + node.in_flight;
  return value + p_.exploration * std::sqrt(std::log(1.0 + parent_visits) / visits);
}

bool Mcts::pruned(const Node& node) const {
  return node.correct && node.log_time > fastest_ + std::log(p_.prune_factor);
}

bool Mcts::may_widen(const Node& node) const {
  int own_in_flight = node.in_flight;
  for (const int child : node.children) own_in_flight -= nodes_[child].in_flight;
  const double children = static_cast<double>(node.children.size()) + own_in_flight;
  const double allowed = p_.widening * (1 + p_.quality * own_reward(node)) *
                         std::pow(node.visits + node.in_flight, p_.exponent);
  return children < allowed;
}

bool Mcts::open_below(int at, bool with_pruned) const {
  const Node& node = nodes_[at];
  if (!node.closed && (with_pruned || !pruned(node))) return true;
  return std::any_of(node.children.begin(), node.children.end(),
                     [&](int child) { return open_below(child, with_pruned); });
}

// From the root to the node to expand, or -1.
int Mcts::descend(bool with_pruned) const {
  if (nodes_.empty() || !open_below(0, with_pruned)) return -1;
  int at = 0;
  for (;;) {
    const Node& node = nodes_[at];
    const bool usable = !node.closed && (with_pruned || !pruned(node));
    if (usable && may_widen(node)) return at;
    int next = -1;
    double best = 0;
    for (const int child : node.children) {
      if (!open_below(child, with_pruned)) continue;
      const double bound = upper_bound(nodes_[child], node.visits + node.in_flight);
      if (next < 0 || bound > best) {
        next = child;
        best = bound;
      }
    }
    if (next < 0) return at;  // nowhere deeper to go
    at = next;
  }
}

std::optional<std::int64_t> Mcts::start() {
  int at = descend(false);
  if (at < 0) at = descend(true);
  if (at < 0) return std::nullopt;
  add_in_flight(at, 1);
  return nodes_[at].id;
}

void Mcts::cancel(std::int64_t parent) { add_in_flight(index(parent), -1); }

void Mcts::close(std::int64_t id) { nodes_[index(id)].closed = true; }

void Mcts::finalize(std::int64_t parent, std::int64_t child, const NodeResult& result) {
  const int at = index(parent);
  add_in_flight(at, -1);
  insert(child, at, result);
}

void Mcts::restore(std::int64_t parent, std::int64_t child, const NodeResult& result) {
  insert(child, index(parent), result);
}

std::vector<SearchNode> Mcts::nodes() const {
  std::vector<SearchNode> all;
  for (const Node& node : nodes_) {
    all.push_back({node.id, node.parent < 0 ? 0 : nodes_[node.parent].id, node.visits,
                   node.in_flight, mean(node), node.closed});
  }
  return all;
}

}  // namespace

std::unique_ptr<Search> make_mcts(const MctsParameters& parameters) {
  return std::make_unique<Mcts>(parameters);
}

}  // namespace kernelpro
