// SPDX-License-Identifier: Apache-2.0
// Chooses which candidate to build on next. A search knows ids and rewards, nothing about kernels.
// It does not care who writes the next candidate (a model, the tuner), so all proposers share one
// tree.
//
// The node protocol: `start` picks a parent and counts an expansion in flight, so that several slow
// expansions spread out; it ends in exactly one `finalize`, or in `cancel` when it gave nothing.
// `restore` adds further children of the same turn, and children of a parent that was not started.
// A search is rebuilt from the store with `add_root`, `restore` and `close` in their order, and
// then chooses as if it had never stopped. One thread at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace kernelpro {

// A finished candidate's result, and the remaining gain by its diagnosis. 0: not known.
struct NodeResult {
  bool correct = false;
  double time_us = 0;   // when correct
  bool stop = false;    // its diagnosis sees little or nothing left to win
  double fraction = 0;  // share of the speed of light that it reaches
  double likely = 0;    // speed-up promised for answering its best finding, >= 1
  double upper = 0;     // upper bound of that
};

struct SearchNode {  // for reports and tests
  std::int64_t id = 0;
  std::int64_t parent = 0;
  int visits = 0;
  int in_flight = 0;
  double value = 0;     // mean reward
  bool closed = false;  // no more children are tried
  std::string reason;   // why no more are tried, or only when nothing else is left
};

// An expansion: of which node, and how to write its candidates.
struct Turn {
  std::int64_t parent = 0;
  int wanted = 0;           // candidates; 0: the proposer decides
  int implementations = 1;  // of each idea; counted in `wanted`
  double temperature = -1;  // for sampling a model's answer; < 0: the model's setting
};

class Search {
 public:
  virtual ~Search() = default;
  virtual std::string name() const = 0;
  // The first node. REQUIRES: called once, before anything else.
  virtual void add_root(std::int64_t id, const NodeResult& result) = 0;
  // Begins an expansion; nullopt when the whole tree is exhausted or waits for those in flight.
  virtual std::optional<Turn> start() = 0;
  // Counts an expansion of `parent` in flight, as `start` does of the one it picks.
  virtual void begin(std::int64_t parent) = 0;
  virtual void cancel(std::int64_t parent) = 0;  // the expansion gave nothing
  virtual void close(std::int64_t id) = 0;       // its proposer has nothing more to add
  virtual void finalize(std::int64_t parent, std::int64_t child, const NodeResult& result) = 0;
  // start + finalize of a stored evaluation.
  virtual void restore(std::int64_t parent, std::int64_t child, const NodeResult& result) = 0;
  virtual std::vector<SearchNode> nodes() const = 0;  // in order of evaluation
  // The last share of a budget in which a run that writes sources builds on the best alone. A
  // search that explores is worth that only while its finds can still be built on.
  virtual double endgame() const { return 0; }
};
using SearchMaker = std::function<std::unique_ptr<Search>()>;  // each time an empty one

}  // namespace kernelpro
