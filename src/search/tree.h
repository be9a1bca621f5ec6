// SPDX-License-Identifier: Apache-2.0
// Common base of the simpler searches: the nodes in order of evaluation, expansions in flight, open
// nodes and the fastest ones. A subclass adds only its choice.
#pragma once

#include <set>
#include <unordered_map>
#include <utility>

#include "search/parameters.h"
#include "search/search.h"

namespace kernelpro {

class TreeSearch : public Search {
 public:
  void add_root(std::int64_t id, const NodeResult& result) override;
  std::optional<Turn> start() override;
  void begin(std::int64_t parent) override;
  void cancel(std::int64_t parent) override;
  void close(std::int64_t id) override;
  void finalize(std::int64_t parent, std::int64_t child, const NodeResult& result) override;
  void restore(std::int64_t parent, std::int64_t child, const NodeResult& result) override;
  std::vector<SearchNode> nodes() const override;

 protected:
  struct Node {
    std::int64_t id = 0;
    int parent = -1;  // index
    int children = 0;
    int in_flight = 0;
    double time_us = 0;  // 0: failed
    bool open = true;
    bool stop = false;  // open: only when nothing else is left
  };

  explicit TreeSearch(const SearchParameters& parameters) : p_(parameters) {}

  // The node to expand, or -1. REQUIRES: there is a root.
  virtual int choose() = 0;
  // How to write its candidates; the parent is filled in.
  virtual Turn ask() const { return {0, p_.candidates, 1, -1}; }
  virtual void added(int) {}  // after each evaluation

  const std::vector<Node>& all() const { return nodes_; }
  // Tries of a node, including those in flight.
  int tries(int node) const { return nodes_[node].children + nodes_[node].in_flight; }
  int in_flight() const { return in_flight_; }
  // Open correct nodes below the ceiling, as {time, index}: fastest first, ties by age.
  const std::set<std::pair<double, int>>& ranked() const { return ranked_; }
  // The fastest open node; if there is none, the root, if open; else the fastest of those at the
  // ceiling; else -1.
  int fastest() const;
  bool seeding() const { return tries(0) < p_.seeds && nodes_[0].open && !nodes_[0].stop; }
  const SearchParameters& parameters() const { return p_; }

 private:
  void insert(int parent, std::int64_t id, const NodeResult& result);
  int index(std::int64_t id) const;

  SearchParameters p_;
  std::vector<Node> nodes_;
  std::unordered_map<std::int64_t, int> by_id_;
  std::set<std::pair<double, int>> ranked_;
  std::set<std::pair<double, int>> stopped_;
  int in_flight_ = 0;
};

// Why a node is closed, for display.
inline constexpr const char* kFailedReason = "failed";
inline constexpr const char* kStopReason = "its diagnosis says nothing is left";
inline constexpr const char* kExhaustedReason = "its proposer has nothing more to add";

// Whether a diagnosis without further gain ends the candidate's line for good.
bool for_good(const SearchParameters& parameters, const NodeResult& result);

// The temperature of the seed after `before` others; < 0: none is set.
double seed_temperature(const SearchParameters& parameters, int before);

}  // namespace kernelpro
