// SPDX-License-Identifier: Apache-2.0
// Connects a search to a run: the result it gets for each candidate, and the search of a stored
// run, rebuilt.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "run/store/ledger.h"
#include "run/store/settings.h"
#include "run/store/store.h"
#include "search/search.h"

namespace kernelpro {

// The result that a search gets for a candidate. What `feedback` hides from the writer does not
// guide the search either. REQUIRES: the ledger has the candidate.
NodeResult node_result(const Ledger& ledger, std::int64_t id, Feedback feedback);

// Names a candidate's source where writers of sources are at work, whose tuned knobs are settings
// of one node; "" where the settings themselves are what the search chooses among.
std::string source_of(const Known& known, const RunSettings& settings);

// A run's search, planted with its candidates. Whatever a search decides depends on the candidates'
// results and their order alone, so it can be planted anew when results change.
class Planted {
 public:
  explicit Planted(SearchMaker make);

  // Closes that `place` repeats, each as soon as as many candidates are there as when it was
  // stored: a search may choose differently depending on the order. REQUIRES: by `after`, and
  // called first.
  void expect(std::vector<ClosedLine> closed);
  // Adds an evaluated candidate. One without a parent becomes the root, or a child of the root: the
  // other candidates that a run begins with. `source` names its source: those of one source are one
  // node, at its fastest setting; "": a node of its own.
  void place(std::int64_t parent, std::int64_t id, const NodeResult& node,
             const std::string& source = "");
  // The protocol of search.h. A turn names the fastest setting of the node that was picked.
  std::optional<Turn> start();
  // A turn that builds on this candidate, whatever the search would pick. REQUIRES: may_start_on.
  Turn start_on(std::int64_t id);
  // False: its proposer has nothing more to add to it.
  bool may_start_on(std::int64_t id) const { return closed_.count(node_of(id)) == 0; }
  void cancel(std::int64_t parent);
  void close(std::int64_t id);
  void finalize(std::int64_t parent, std::int64_t id, const NodeResult& node,
                const std::string& source = "");

  // Begins again with an empty search and repeats all of the above with the results of today, as a
  // resumed run would: after diagnoses were revised.
  void replant(const std::function<NodeResult(std::int64_t id)>& result);

  const Search& search();

 private:
  // A node that was placed or closed.
  struct Step {
    std::int64_t id = 0;
    std::int64_t parent = 0;  // 0: it is the root
    bool closed = false;
  };
  // A source: its settings in order of evaluation. The first one's id is the node's.
  struct Node {
    std::vector<std::int64_t> settings;
    std::int64_t fastest = 0;
  };
  std::int64_t node_of(std::int64_t id) const;
  void add(const Step& placed, const NodeResult& node);
  bool add_setting(std::int64_t node, std::int64_t id);
  void plant();

  SearchMaker make_;
  std::unique_ptr<Search> search_;
  std::vector<Step> steps_;
  int placed_ = 0;
  std::deque<ClosedLine> expected_;
  std::multiset<std::int64_t> in_flight_;
  std::set<std::int64_t> closed_;
  std::unordered_map<std::int64_t, NodeResult> results_;       // of every candidate
  std::unordered_map<std::int64_t, Node> nodes_;               // by the node's id
  std::unordered_map<std::int64_t, std::int64_t> setting_of_;  // candidate -> its node
  std::unordered_map<std::string, std::int64_t> by_source_;
  bool stale_ = false;  // a node has become faster since it was planted
};

// Of the search that the settings name. Fails with kBadInput when there is none of that name.
Result<SearchMaker> search_maker(const RunSettings& settings);

// The lines that the run's own proposer has exhausted; another may still add to them.
Result<std::vector<ClosedLine>> closed_lines(const Store& store, const RunSettings& settings);

// The nodes of a stored run in the order of evaluation, as a resume would see them, with the reason
// why a node is no longer expanded. Fails with kStore, or with kBadInput when this version does not
// know the run's search.
Result<std::vector<SearchNode>> stored_nodes(const Store& store);

}  // namespace kernelpro
