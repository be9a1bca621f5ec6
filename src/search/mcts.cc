// SPDX-License-Identifier: Apache-2.0
#include "search/mcts.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <queue>
#include <unordered_map>

#include "base/error.h"
#include "base/text.h"
#include "search/tree.h"

namespace kernelpro {

namespace {

enum class Why : std::uint8_t { kOpen, kFailed, kStop, kExhausted, kSlow, kBarren, kOutpaced };

// Expansion order: a tier's turn comes when all earlier tiers are empty.
enum Tier : std::uint8_t { kForemost, kPutOff, kStopped, kBehind, kClosed };

struct Node {
  std::int64_t id = 0;
  double log_time = 0;  // when correct
  // Over the node and everything below it.
  double sum_log_time = 0;
  double best_log_time = std::numeric_limits<double>::infinity();
  int visits = 0;
  int correct_visits = 0;
  int in_flight = 0;
  int left[kClosed] = {};  // by tier: open nodes of it and of earlier ones
  // Indices; -1: none. A child is listed while its subtree has an open node.
  int parent = -1;
  int first_child = -1;
  int next = -1;  // sibling
  // For the node alone.
  int children = 0;
  int own_in_flight = 0;
  int barren = 0;       // tries since one was faster than the node
  float log_gain = 0;   // promised by its diagnosis
  float log_light = 0;  // logarithm of its share of the speed of light; 0: not known
  bool correct = false;
  bool listed = false;
  Tier tier = kForemost;
  Why why = Why::kOpen;
};

class Mcts : public Search {
 public:
  explicit Mcts(const SearchParameters& parameters)
      : p_(parameters), log_prune_(std::log(parameters.prune_factor)) {}

  std::string name() const override { return "mcts"; }
  void add_root(std::int64_t id, const NodeResult& result) override;
  std::optional<Turn> start() override;
  void begin(std::int64_t parent) override { add_in_flight(index(parent), 1); }
  void cancel(std::int64_t parent) override;
  void close(std::int64_t id) override;
  void finalize(std::int64_t parent, std::int64_t child, const NodeResult& result) override;
  void restore(std::int64_t parent, std::int64_t child, const NodeResult& result) override;
  std::vector<SearchNode> nodes() const override;
  double endgame() const override { return p_.endgame; }

 private:
  void insert(std::int64_t id, int parent, const NodeResult& result);
  void back_up(int node);
  void judge_parent(int parent, int child);
  void learn_time(int node);
  void put_off(int node, Why why);
  bool outpaced(const Node& node) const;
  void leave_behind(int node);
  void move(int node, Tier tier, Why why);
  void count(int node, Tier tier, int change);
  void add_in_flight(int node, int change);
  int index(std::int64_t id) const;
  void rescale();
  double reward(double log_time) const;
  double mean(const Node& node) const;
  double promise(const Node& node) const;
  double value(const Node& node) const;
  bool may_widen(const Node& node) const;
  int descend(Tier tier);
  std::string reason(const Node& node) const;

  SearchParameters p_;
  double log_prune_;
  std::vector<Node> nodes_;
  std::unordered_map<std::int64_t, int> by_id_;
  // Correct nodes that are not too slow, the slowest on top.
  std::priority_queue<std::pair<double, int>> slowest_first_;
  bool promises_ = false;  // some diagnosis promised a gain
  int fastest_ = -1;       // index; -1: none is correct
  double slowest_ = 0;     // logarithm, after clamping
  // Rewards: 0 at log_time `bottom_`, plus `per_log_` for each unit below it.
  double bottom_ = 0;
  double per_log_ = 0;
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
  if (node.correct) node.log_time = std::log(result.time_us);
  if (result.likely > 1) node.log_gain = static_cast<float>(std::log(result.likely));
  const bool first_promise = node.log_gain > 0 && !promises_;
  promises_ = promises_ || first_promise;
  if (result.fraction > 0 && result.fraction < 1) {
    node.log_light = static_cast<float>(std::log(result.fraction));
    // No change gains more than the distance to the speed of light.
    node.log_gain = std::min(node.log_gain, -node.log_light);
  }
  std::fill(std::begin(node.left), std::end(node.left), 1);
  const int self = static_cast<int>(nodes_.size());
  const bool correct = node.correct;
  nodes_.push_back(node);
  by_id_[id] = self;
  back_up(self);
  const int fastest = fastest_;
  if (correct) learn_time(self);
  // A failed root must stay open, being all there is to build on; any other failure is a wall.
  if (!correct && parent >= 0) move(self, kClosed, Why::kFailed);
  if (result.stop) move(self, for_good(p_, result) ? kClosed : kStopped, Why::kStop);
  if (parent >= 0) judge_parent(parent, self);
  // All are compared again where what they are compared with has changed.
  for (int at = fastest_ != fastest || first_promise ? 0 : self; at <= self; ++at) leave_behind(at);
}

// Propagates a new node up the tree.
void Mcts::back_up(int self) {
  const bool correct = nodes_[self].correct;
  double log_time = nodes_[self].log_time;
  // A time beyond the scale would dominate a mean.
  const double counted =
      fastest_ < 0 ? log_time : std::min(log_time, nodes_[fastest_].log_time + log_prune_);
  if (correct) slowest_ = fastest_ < 0 ? counted : std::max(slowest_, counted);
  if (nodes_[self].parent >= 0) ++nodes_[nodes_[self].parent].children;
  for (int at = self; at >= 0; at = nodes_[at].parent) {
    Node& above = nodes_[at];
    ++above.visits;
    if (at != self) {
      for (int& left : above.left) ++left;
    }
    if (!above.listed && above.parent >= 0) {
      Node& holder = nodes_[above.parent];
      above.next = holder.first_child;
      holder.first_child = at;
      above.listed = true;
    }
    if (!correct) continue;
    ++above.correct_visits;
    above.sum_log_time += counted;
    above.best_log_time = std::min(above.best_log_time, log_time);
  }
}

// Updates a parent from the result of one try.
void Mcts::judge_parent(int parent, int child) {
  Node& node = nodes_[parent];
  if (!node.correct) return;
  if (nodes_[child].correct && nodes_[child].log_time < node.log_time) {
    node.barren = 0;
    if (node.why == Why::kBarren) move(parent, kForemost, Why::kOpen);
  } else {
    ++node.barren;
    if (p_.patience > 0 && node.barren >= p_.patience && parent != fastest_) {
      put_off(parent, Why::kBarren);
    }
  }
}

void Mcts::learn_time(int node) {
  slowest_first_.emplace(nodes_[node].log_time, node);
  if (fastest_ < 0 || nodes_[node].log_time < nodes_[fastest_].log_time) {
    const int before = fastest_;
    fastest_ = node;
    if (before >= 0 && p_.patience > 0 && nodes_[before].barren >= p_.patience) {
      put_off(before, Why::kBarren);
    }
  }
  rescale();
  const double limit = nodes_[fastest_].log_time + log_prune_;
  while (slowest_first_.top().first > limit) {
    put_off(slowest_first_.top().second, Why::kSlow);
    slowest_first_.pop();
  }
}

void Mcts::put_off(int at, Why why) {
  Node& node = nodes_[at];
  if (node.tier == kForemost) {
    move(at, kPutOff, why);
  } else if (why == Why::kSlow && node.tier == kPutOff) {
    node.why = why;  // for good
  }
}

// What is usually kept of its diagnosis's promise would not make it faster than the fastest
// (results/search.md, "What a written step is worth").
bool Mcts::outpaced(const Node& node) const {
  // Without a diagnosis what it promises is not known: then it is profiled where it is chosen.
  const bool known = node.log_gain > 0 || node.log_light < 0;
  return promises_ && known && p_.diagnosis > 0 && node.correct && fastest_ >= 0 &&
         node.log_time > nodes_[fastest_].log_time &&
         node.log_time - p_.kept * node.log_gain >= nodes_[fastest_].log_time;
}

// For good, since the fastest only becomes faster.
void Mcts::leave_behind(int at) {
  if (nodes_[at].tier < kStopped && outpaced(nodes_[at])) move(at, kBehind, Why::kOutpaced);
}

void Mcts::move(int at, Tier tier, Why why) {
  Node& node = nodes_[at];
  if (node.tier == kClosed) return;
  count(at, node.tier, -1);
  node.tier = tier;
  node.why = why;
  count(at, tier, 1);
}

void Mcts::count(int at, Tier tier, int change) {
  for (; at >= 0; at = nodes_[at].parent) {
    for (int t = tier; t < kClosed; ++t) {
      nodes_[at].left[t] += change;
      KP_ASSERT(nodes_[at].left[t] >= 0);
    }
  }
}

void Mcts::add_in_flight(int node, int change) {
  nodes_[node].own_in_flight += change;
  for (; node >= 0; node = nodes_[node].parent) {
    nodes_[node].in_flight += change;
    KP_ASSERT(nodes_[node].in_flight >= 0);
  }
}

void Mcts::add_root(std::int64_t id, const NodeResult& result) {
  KP_ASSERT(nodes_.empty());
  insert(id, -1, result);
}

// REQUIRES: there is a correct node.
void Mcts::rescale() {
  const double top = nodes_[fastest_].log_time;
  const double least = top + std::log(p_.least_scale);
  bottom_ = std::clamp(slowest_, least, std::max(least, top + log_prune_));
  per_log_ = 1 / (bottom_ - top);
}

double Mcts::reward(double log_time) const {
  return std::clamp((bottom_ - log_time) * per_log_, 0.0, 1.0);
}

double Mcts::mean(const Node& node) const {
  if (node.correct_visits == 0) return 0;
  // The reward is linear in the logarithm, so the mean can be taken first.
  const double mean_log = node.sum_log_time / node.correct_visits;
  return reward(mean_log) * node.correct_visits / (node.visits + node.in_flight);
}

// What the node's own diagnosis promises beyond what its descendants have brought, whatever they
// answered, as a share of the scale.
double Mcts::promise(const Node& node) const {
  const double brought = node.correct ? node.log_time - node.best_log_time : 0;
  const double left = node.log_gain - brought;
  if (left <= 0 || p_.diagnosis <= 0) return 0;
  return p_.diagnosis * std::min(1.0, left * per_log_);
}

double Mcts::value(const Node& node) const {
  const double best = node.correct_visits == 0 ? 0 : reward(node.best_log_time);
  return best + promise(node) / (1 + node.children + node.own_in_flight);
}

bool Mcts::may_widen(const Node& node) const {
  const double worth = node.correct ? reward(node.log_time) + promise(node) : 0;
  const double allowed =
      p_.widening * (1 + p_.quality * worth) * std::pow(node.visits + node.in_flight, p_.exponent);
  return node.children + node.own_in_flight < allowed;
}

// Walks from the root to the node to expand; -1: none.
int Mcts::descend(Tier tier) {
  if (nodes_[0].left[tier] == 0) return -1;
  for (int at = 0;;) {
    Node& node = nodes_[at];
    if (node.tier <= tier && may_widen(node)) return at;
    const double explore = std::log(1.0 + node.visits + node.in_flight);
    int next = -1;
    double best = 0;
    for (int* link = &node.first_child; *link >= 0;) {
      const int at_child = *link;
      Node& child = nodes_[at_child];
      if (child.left[kBehind] == 0) {
        child.listed = false;
        *link = child.next;
        continue;
      }
      link = &child.next;
      if (child.left[tier] == 0) continue;
      const double bound =
          value(child) + p_.exploration * std::sqrt(explore / (child.visits + child.in_flight));
      if (next < 0 || bound > best || (bound == best && at_child < next)) {
        next = at_child;
        best = bound;
      }
    }
    if (next < 0) return at;  // cannot go deeper
    at = next;
  }
}

std::optional<Turn> Mcts::start() {
  if (nodes_.empty()) return std::nullopt;
  const int tries = nodes_[0].children + nodes_[0].own_in_flight;
  const bool open = nodes_[0].tier != kStopped && nodes_[0].tier != kClosed;
  const bool seed = tries < p_.seeds && open;
  int at = seed ? 0 : -1;
  for (const Tier tier : {kForemost, kPutOff, kStopped, kBehind}) {
    if (at < 0) at = descend(tier);
  }
  if (at < 0) return std::nullopt;
  add_in_flight(at, 1);
  const std::int64_t id = nodes_[at].id;
  return seed ? Turn{id, 1, 1, seed_temperature(p_, tries)} : Turn{id, p_.candidates, 1, -1};
}

void Mcts::cancel(std::int64_t parent) {
  const int at = index(parent);
  KP_ASSERT(nodes_[at].own_in_flight > 0);
  add_in_flight(at, -1);
}

void Mcts::close(std::int64_t id) { move(index(id), kClosed, Why::kExhausted); }

void Mcts::finalize(std::int64_t parent, std::int64_t child, const NodeResult& result) {
  cancel(parent);
  restore(parent, child, result);
}

void Mcts::restore(std::int64_t parent, std::int64_t child, const NodeResult& result) {
  insert(child, index(parent), result);
}

std::string Mcts::reason(const Node& node) const {
  switch (node.why) {
    case Why::kOpen:
      return "";
    case Why::kFailed:
      return kFailedReason;
    case Why::kStop:
      return kStopReason;
    case Why::kExhausted:
      return kExhaustedReason;
    case Why::kSlow:
      return "slower than the best by more than " + number(p_.prune_factor, 3) + "x";
    case Why::kOutpaced:
      return "slower than the best by more than its diagnosis is likely to bring";
    case Why::kBarren:
      return std::to_string(node.barren) + " tries in a row without improvement";
  }
  return "";
}

std::vector<SearchNode> Mcts::nodes() const {
  std::vector<SearchNode> all;
  all.reserve(nodes_.size());
  for (const Node& node : nodes_) {
    all.push_back({node.id, node.parent < 0 ? 0 : nodes_[node.parent].id, node.visits,
                   node.in_flight, mean(node), node.tier == kClosed, reason(node)});
  }
  return all;
}

}  // namespace

std::unique_ptr<Search> make_mcts(const SearchParameters& parameters, std::uint64_t) {
  return std::make_unique<Mcts>(parameters);
}

}  // namespace kernelpro
