// SPDX-License-Identifier: Apache-2.0
// Which candidate to build on next. A search knows ids and rewards, nothing of kernels; who writes
// the next candidate (a model, the tuner) is all the same to it, so that they share one tree.
//
// The node protocol: `start` picks a parent and counts an expansion in flight, so that several slow
// expansions spread out; it ends in exactly one `finalize`, or in `cancel` when nothing came of it.
// Further children of the same turn, and children of a parent that was not started, come by
// `restore`. A search is rebuilt from the store by `add_root` and `restore` in the order of
// evaluation, and then chooses as if it had never stopped; what `close` said is said again by the
// proposers. One thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace kernelpro {

// What a finished candidate was worth, and what its diagnosis says of what is left. 0: not known.
struct NodeResult {
  bool correct = false;
  double time_us = 0;   // when correct
  bool stop = false;    // its diagnosis says that little or nothing is left to win
  double fraction = 0;  // of the speed of light that it reaches
  double likely = 0;    // speed-up that answering its best finding promises, >= 1
  double upper = 0;     // and at most
};

struct SearchNode {  // for report and tests
  std::int64_t id = 0;
  std::int64_t parent = 0;
  int visits = 0;
  int in_flight = 0;
  double value = 0;     // mean reward
  bool closed = false;  // no more children are tried
  std::string reason;   // why no more children are tried, or only when nothing else is left
};

// How the expansion that `start` began is to be written.
struct Turn {
  int wanted = 0;           // candidates; 0: as many as the proposer sees fit
  int implementations = 1;  // of each idea, among those wanted
  double temperature = -1;  // to sample a model's answer with; < 0: as the model is set
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
  // What the latest `start` asks for.
  virtual Turn turn() const { return {}; }
  virtual void cancel(std::int64_t parent) = 0;  // the expansion gave nothing
  virtual void close(std::int64_t id) = 0;       // its proposer has nothing more to add
  virtual void finalize(std::int64_t parent, std::int64_t child, const NodeResult& result) = 0;
  // start + finalize of a stored evaluation.
  virtual void restore(std::int64_t parent, std::int64_t child, const NodeResult& result) = 0;
  virtual std::vector<SearchNode> nodes() const = 0;  // in order of evaluation
};

}  // namespace kernelpro
