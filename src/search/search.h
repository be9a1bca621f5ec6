// SPDX-License-Identifier: Apache-2.0
// Which candidate to build on next. A search knows ids and rewards, nothing of kernels.
//
// The node protocol: `start` picks a parent and counts a visit in flight, so that several slow
// expansions spread out; it ends in exactly one `finalize` per child that was evaluated, or
// `cancel` when nothing came of it. A search is rebuilt from the store by `restore` in the order of
// evaluation, and then chooses as if it had never stopped. One thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace kernelpro {

// What a finished candidate was worth.
struct NodeResult {
  bool correct = false;
  double time_us = 0;  // when correct
  bool stop = false;   // its diagnosis says that nothing is left to win
};

struct SearchNode {  // for report and tests
  std::int64_t id = 0;
  std::int64_t parent = 0;
  int visits = 0;
  int in_flight = 0;
  double value = 0;     // mean reward
  bool closed = false;  // no more children are tried
};

class Search {
 public:
  virtual ~Search() = default;
  virtual std::string name() const = 0;
  // The first node. REQUIRES: called once, before anything else.
  virtual void add_root(std::int64_t id, const NodeResult& result) = 0;
  // A parent to expand, or nullopt when the whole tree is exhausted or waits for expansions in
  // flight.
  virtual std::optional<std::int64_t> start() = 0;
  virtual void cancel(std::int64_t parent) = 0;  // the expansion gave nothing
  virtual void close(std::int64_t id) = 0;       // its proposer has nothing more to add
  virtual void finalize(std::int64_t parent, std::int64_t child, const NodeResult& result) = 0;
  // start + finalize of a stored evaluation.
  virtual void restore(std::int64_t parent, std::int64_t child, const NodeResult& result) = 0;
  virtual std::vector<SearchNode> nodes() const = 0;
};

}  // namespace kernelpro
