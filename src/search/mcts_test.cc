// SPDX-License-Identifier: Apache-2.0
#include "search/mcts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <map>
#include <set>

#include "base/files.h"
#include "base/hash.h"
#include "base/text.h"
#include "search/stoppers.h"
#include "search/testing.h"

namespace kernelpro {
namespace {

using searching::start;

// A candidate is a point of an 8 x 8 x 8 x 8 grid; a change moves one coordinate by one or two.
using Point = std::array<int, 4>;

double time_at(const Point& p) {
  if (p[0] == 7 && p[1] < 3) return 0;  // does not compile
  return 10 * std::exp(0.25 * (std::abs(p[0] - 5) + std::abs(p[1] - 6)) +
                       0.15 * (std::abs(p[2] - 3) + std::abs(p[3] - 7)));
}

NodeResult result_at(const Point& p) { return {time_at(p) > 0, time_at(p), false}; }

// A naive proposer: the first untried move in a fixed order that depends on the parent.
class Grid {
 public:
  Grid() { points_[1] = {0, 0, 0, 0}, known_.insert(points_[1]); }
  std::optional<std::int64_t> move(std::int64_t parent) {
    const Point from = points_[parent];
    for (int i = 0; i < 16; ++i) {
      const int turn = static_cast<int>((parent * 7 + i) % 16);
      Point to = from;
      const int steps[] = {1, -1, 2, -2};
      to[static_cast<std::size_t>(turn % 4)] += steps[turn / 4];
      const int changed = to[static_cast<std::size_t>(turn % 4)];
      if (changed < 0 || changed > 7 || !known_.insert(to).second) continue;
      const auto id = static_cast<std::int64_t>(points_.size()) + 1;
      points_[id] = to;
      return id;
    }
    return std::nullopt;
  }
  const Point& at(std::int64_t id) { return points_[id]; }

 private:
  std::map<std::int64_t, Point> points_;
  std::set<Point> known_;
};

struct Step {
  std::int64_t parent, child;
  NodeResult result;
};

std::vector<Step> search(Search& tree, Grid& grid, int evaluations) {
  std::vector<Step> steps;
  while (static_cast<int>(steps.size()) < evaluations) {
    const auto parent = start(tree);
    if (!parent) break;
    const auto child = grid.move(*parent);
    if (!child) {
      tree.cancel(*parent);
      tree.close(*parent);
      continue;
    }
    steps.push_back({*parent, *child, result_at(grid.at(*child))});
    tree.finalize(*parent, *child, steps.back().result);
  }
  return steps;
}

TEST(Mcts, FindsTheOptimumWithFarFewerEvaluationsThanThereArePoints) {
  Grid grid;
  const auto tree = make_mcts();
  tree->add_root(1, result_at(grid.at(1)));
  int needed = 0;
  const auto steps = search(*tree, grid, 400);
  for (std::size_t i = 0; i < steps.size() && needed == 0; ++i) {
    if (steps[i].result.correct && steps[i].result.time_us < 10.001)
      needed = static_cast<int>(i) + 1;
  }
  ASSERT_GT(needed, 0);
  EXPECT_LE(needed, 400) << "of 4096 points, by a proposer that knows nothing";
}

// Every step of a search as golden text: "parent child outcome".
TEST(Mcts, GoldenTrace) {
  Grid grid;
  const auto tree = make_mcts();
  tree->add_root(1, result_at(grid.at(1)));
  std::string trace;
  for (const Step& step : search(*tree, grid, 60)) {
    trace += std::to_string(step.parent) + " " + std::to_string(step.child) + " " +
             (step.result.correct ? number(step.result.time_us, 6) : "failed") + "\n";
  }
  const std::string path = KERNELPRO_SOURCE_DIR "/src/search/testdata/trace.golden.txt";
  if (std::getenv("KERNELPRO_UPDATE_GOLDEN") != nullptr) {
    ASSERT_TRUE(write_file(path, trace));
  }
  const auto expected = read_file(path);
  ASSERT_TRUE(expected) << "make it with KERNELPRO_UPDATE_GOLDEN=1";
  EXPECT_EQ(trace, *expected) << "refresh with KERNELPRO_UPDATE_GOLDEN=1 if this is meant";
}

TEST(Mcts, ARestoredSearchGoesOnAsTheLiveOneDid) {
  Grid grid;
  const auto live = make_mcts();
  live->add_root(1, result_at(grid.at(1)));
  const auto steps = search(*live, grid, 80);
  for (const std::size_t cut : {0u, 1u, 17u, 50u, 79u}) {
    Grid again;
    const auto restored = make_mcts();
    restored->add_root(1, result_at(again.at(1)));
    for (std::size_t i = 0; i < cut; ++i) {
      // The grid must hand out the same points, as a store would.
      ASSERT_EQ(again.move(steps[i].parent), steps[i].child);
      restored->restore(steps[i].parent, steps[i].child, steps[i].result);
    }
    const auto rest = search(*restored, again, 80 - static_cast<int>(cut));
    ASSERT_EQ(rest.size(), 80 - cut);
    for (std::size_t i = 0; i < rest.size(); ++i) {
      ASSERT_EQ(rest[i].parent, steps[cut + i].parent) << "cut at " << cut << ", step " << i;
      ASSERT_EQ(rest[i].child, steps[cut + i].child);
    }
  }
}

TEST(Mcts, StartsAreBalancedByCancelsAndFinalizes) {
  const auto tree = make_mcts();
  tree->add_root(1, {true, 100, false});
  ASSERT_EQ(start(*tree), 1);
  EXPECT_EQ(tree->nodes()[0].in_flight, 1);
  tree->cancel(1);
  EXPECT_EQ(tree->nodes()[0].in_flight, 0);
  ASSERT_EQ(start(*tree), 1);
  tree->finalize(1, 2, {true, 50, false});
  const auto nodes = tree->nodes();
  ASSERT_EQ(nodes.size(), 2u);
  EXPECT_EQ(nodes[0].in_flight, 0);
  EXPECT_EQ(nodes[0].visits, 2);
  EXPECT_EQ(nodes[1].parent, 1);
  EXPECT_EQ(nodes[1].visits, 1);
}

TEST(Mcts, FailuresAreWallsAndCountAsVisits) {
  const auto tree = make_mcts();
  tree->add_root(1, {true, 100, false});
  std::int64_t next = 2;
  for (int i = 0; i < 20; ++i) {
    const auto parent = start(*tree);
    ASSERT_EQ(parent, 1) << "a failed candidate is never built on";
    tree->finalize(1, next++, {false, 0, false});
  }
  EXPECT_EQ(tree->nodes()[0].visits, 21);
  EXPECT_TRUE(tree->nodes()[5].closed);
  tree->close(1);
  EXPECT_EQ(start(*tree), std::nullopt);
}

TEST(Mcts, AFailedRootCanStillBeBuiltOn) {
  const auto tree = make_mcts();
  tree->add_root(1, {false, 0, false});
  ASSERT_EQ(start(*tree), 1);
  tree->finalize(1, 2, {true, 10, false});
  EXPECT_TRUE(start(*tree).has_value());
}

TEST(Mcts, BetterNodesGetMoreChildren) {
  const auto tree = make_mcts();
  tree->add_root(1, {true, 100, false});
  tree->restore(1, 2, {true, 20, false});
  tree->restore(1, 3, {true, 90, false});
  std::map<std::int64_t, int> children;
  for (std::int64_t next = 4; next < 44; ++next) {
    const auto parent = start(*tree);
    ASSERT_TRUE(parent);
    ++children[*parent];
    tree->finalize(*parent, next, {true, *parent == 2 ? 25.0 : 95.0, false});
  }
  EXPECT_GT(children[2], 2 * children[3]);
}

TEST(Mcts, ExpansionsInFlightSpreadOut) {
  const auto tree = make_mcts();
  tree->add_root(1, {true, 100, false});
  tree->restore(1, 2, {true, 50, false});
  tree->restore(1, 3, {true, 52, false});
  std::set<std::int64_t> parents;
  for (int i = 0; i < 6; ++i) {
    const auto parent = start(*tree);
    ASSERT_TRUE(parent);
    parents.insert(*parent);
  }
  EXPECT_GT(parents.size(), 1u);
}

TEST(Mcts, StopsBelowACeiling) {
  const auto tree = make_mcts();
  tree->add_root(1, {true, 100, false});
  tree->restore(1, 2, {true, 10, true});
  tree->close(1);
  EXPECT_EQ(start(*tree), std::nullopt) << "its diagnosis says that nothing is left to win";
}

TEST(Mcts, WhatIsNearTheCeilingComesAfterAllOthers) {
  const auto tree = make_mcts();
  tree->add_root(1, {true, 100, true, 0.91});
  ASSERT_EQ(start(*tree), 1) << "a better one may be left, and there is nothing else to build on";
  tree->finalize(1, 2, {true, 900, false, 0.1});  // slow, so put off; but below the ceiling
  tree->restore(1, 3, {true, 95, true, 0.96});
  EXPECT_EQ(start(*tree), 2);
  tree->cancel(2);
  tree->close(2);
  const auto nodes = tree->nodes();
  EXPECT_FALSE(nodes[0].closed);
  EXPECT_EQ(nodes[0].reason, "its diagnosis says nothing is left");
  EXPECT_TRUE(nodes[2].closed) << "at 0.96 nothing that counts is left";
  EXPECT_EQ(start(*tree), 1);
  tree->cancel(1);
  tree->close(1);
  EXPECT_FALSE(start(*tree));
}

const SearchNode& node_of(const std::vector<SearchNode>& nodes, std::int64_t id) {
  return *std::find_if(nodes.begin(), nodes.end(), [&](const auto& node) { return node.id == id; });
}

TEST(Mcts, WhatIsFarSlowerIsPutOffUntilNothingElseIsLeft) {
  const auto tree = make_mcts();
  tree->add_root(1, {true, 100});
  tree->restore(1, 2, {true, 90});
  tree->restore(1, 3, {true, 10});  // the root and 2 are nine times slower
  auto nodes = tree->nodes();
  EXPECT_EQ(node_of(nodes, 1).reason, "slower than the best by more than 8x");
  EXPECT_EQ(node_of(nodes, 2).reason, "slower than the best by more than 8x");
  EXPECT_EQ(node_of(nodes, 3).reason, "");
  for (int i = 0; i < 10; ++i) {
    ASSERT_EQ(start(*tree), 3);
    tree->cancel(3);
  }
  tree->close(3);
  const auto next = start(*tree);
  EXPECT_TRUE(next == 1 || next == 2);
}

TEST(Mcts, TriesThatBringNothingPutANodeOffAndOneThatDoesTakesItUp) {
  const auto tree = make_mcts();
  tree->add_root(1, {true, 100});
  tree->restore(1, 2, {true, 50});
  tree->restore(1, 3, {true, 60});
  for (std::int64_t child = 10; child < 15; ++child) tree->restore(3, child, {true, 70});
  EXPECT_EQ(node_of(tree->nodes(), 3).reason, "5 tries in a row without improvement");
  EXPECT_FALSE(node_of(tree->nodes(), 3).closed);
  for (std::int64_t child = 20; child < 25; ++child) tree->restore(2, child, {false});
  EXPECT_EQ(node_of(tree->nodes(), 2).reason, "") << "the fastest is never put off";
  tree->restore(3, 30, {true, 40});
  EXPECT_EQ(node_of(tree->nodes(), 3).reason, "") << "something came of it";
  EXPECT_EQ(node_of(tree->nodes(), 2).reason, "5 tries in a row without improvement")
      << "it is not the fastest any more";
}

TEST(Mcts, APromisingDiagnosisDrawsTriesAndFadesWithThem) {
  for (const double weight : {0.0, 0.5}) {
    SearchParameters parameters;
    parameters.diagnosis = weight;
    const auto tree = make_mcts(parameters);
    tree->add_root(1, {true, 100, false, 0.1});
    std::map<std::int64_t, int> tried;
    tree->restore(1, 2, {true, 50, false, 0.2, 1.02, 1.05});
    tree->restore(1, 3, {true, 52, false, 0.19, 3.0, 4.0});
    for (std::int64_t child = 10; child < 18; ++child) {
      const auto parent = start(*tree);
      ASSERT_TRUE(parent);
      ++tried[*parent];
      tree->finalize(*parent, child, {true, 60, false, 0.17});
    }
    EXPECT_EQ(tried[3] > tried[2], weight > 0) << weight << ": " << tried[2] << ", " << tried[3];
    EXPECT_GT(tried[2], 0) << weight;
  }
}

// The finding was answered: the next child of the same candidate has nothing to expect of it.
TEST(Mcts, APromiseThatWasKeptDrawsNoMoreTries) {
  const auto tries = [](double likely) {
    SearchParameters parameters;
    parameters.diagnosis = 3;
    parameters.kept = 1;
    const auto tree = make_mcts(parameters);
    tree->add_root(1, {true, 100, false, 0.3, likely, 2.0});
    int of_root = 0;
    for (std::int64_t child = 2; child < 20; ++child) {
      const auto parent = start(*tree);
      of_root += parent == 1;
      tree->finalize(*parent, child, {true, child == 2 ? 55.0 : 56.0, false, 0.54});
    }
    return of_root;
  };
  EXPECT_EQ(tries(1.7), 1) << "1.8x has come of it";
  EXPECT_GT(tries(3.0), tries(1.7)) << "more than that was promised";
}

// Exploring pays where a fifth of what is promised reaches the best.
TEST(Mcts, ASlowerCandidateIsBuiltOnWhereItsPromiseReachesTheBest) {
  const auto tries = [](double likely) {
    SearchParameters parameters;
    parameters.exploration = 0.5;
    const auto tree = make_mcts(parameters);
    tree->add_root(1, {true, 100, false, 0.3, 1.05, 1.1});
    tree->restore(1, 2, {true, 60, false, 0.5, 1.1, 1.2});
    tree->restore(1, 3, {true, 62, false, 0.48, likely, 2.0});
    int of_slower = 0;
    for (std::int64_t child = 4; child < 40; ++child) {
      const auto parent = start(*tree);
      of_slower += *parent == 3;
      EXPECT_NE(*parent, 1) << "its best child has brought more than it promised";
      tree->finalize(*parent, child, {true, 61, false, 0.49});
    }
    return of_slower;
  };
  EXPECT_EQ(tries(1.1), 0) << "it would, if promises were kept";
  EXPECT_GT(tries(1.4), 0);
}

// A preset's first candidates are written from the root, whatever came of the first.
TEST(Mcts, SeedsGoOnWhereTheRootWasLeftBehind) {
  SearchParameters parameters;
  parameters.seeds = 4;
  const auto tree = make_mcts(parameters);
  tree->add_root(1, {true, 100, false, 0.3, 1.1, 1.2});
  for (std::int64_t child = 2; child < 6; ++child) {
    EXPECT_EQ(start(*tree), 1);
    tree->finalize(1, child, {true, 50, false, 0.6, 1.2, 1.3});
  }
  EXPECT_NE(start(*tree), 1);
}

// With the fastest at its ceiling, but not at the speed of light, the rest is still no better.
TEST(Mcts, WhatWasLeftBehindComesLast) {
  const auto tree = make_mcts();
  tree->add_root(1, {true, 100, false, 0.5, 1.1, 1.2});
  tree->restore(1, 2, {true, 60, true, 0.9});
  EXPECT_EQ(start(*tree), 2);
  tree->close(2);
  EXPECT_EQ(start(*tree), 1) << "nothing else is left";
}

TEST(Mcts, APromiseIsWorthNoMoreThanWhatTheSpeedOfLightLeaves) {
  const auto first = [](double fraction) {
    SearchParameters parameters;
    parameters.diagnosis = 1;
    const auto tree = make_mcts(parameters);
    tree->add_root(1, {true, 100});
    tree->close(1);
    tree->restore(1, 2, {true, 50});
    tree->restore(1, 3, {true, 55, false, fraction, 3.0, 4.0});
    return start(*tree);
  };
  EXPECT_EQ(first(0.2), 3);
  EXPECT_EQ(first(0.99), 2);
}

TEST(Mcts, NodesBelowAClosedOneAreStillReached) {
  const auto tree = make_mcts();
  tree->add_root(1, {true, 100});
  tree->restore(1, 2, {false});
  tree->restore(2, 3, {true, 50});  // a reply that builds on what failed
  tree->close(1);
  EXPECT_EQ(start(*tree), 3);
  tree->finalize(3, 4, {true, 40, true});
  tree->close(3);
  EXPECT_EQ(start(*tree), std::nullopt);
}

// Counts are maintained up the tree; this recounts them.
TEST(Mcts, WhatIsOpenIsFoundToTheLast) {
  const auto tree = make_mcts();
  tree->add_root(1, {true, 100});
  std::uint64_t state = 1;
  std::vector<std::int64_t> ids = {1};
  for (std::int64_t child = 2; child < 300; ++child) {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    const std::int64_t parent = ids[(state >> 33) % ids.size()];
    const double time = (state >> 40) % 4 == 0 ? 0 : static_cast<double>((state >> 45) % 400 + 5);
    tree->restore(parent, child, {time > 0, time, (state >> 50) % 20 == 0});
    ids.push_back(child);
  }
  std::size_t open = 0;
  for (const SearchNode& node : tree->nodes()) open += node.closed ? 0 : 1;
  std::set<std::int64_t> found;
  while (const auto parent = start(*tree)) {
    tree->cancel(*parent);
    tree->close(*parent);
    EXPECT_TRUE(found.insert(*parent).second);
  }
  EXPECT_EQ(found.size(), open);
  EXPECT_GT(open, 100u);
}

TEST(Stoppers, LittleIsExpected) {
  Standing s;
  s.has_correct = true;
  s.fraction_of_ceiling = 0.9;
  const auto stopper = stop_when_little_is_expected(0.005);
  s.since_best = 2;
  EXPECT_FALSE(stopper->reason(s)) << "too early";
  s.since_best = 8;
  EXPECT_FALSE(stopper->reason(s));
  s.since_best = 10;
  EXPECT_TRUE(stopper->reason(s));
  s.fraction_of_ceiling = 0.5;
  EXPECT_FALSE(stopper->reason(s)) << "much is left";
  EXPECT_NEAR(*expected_gain(s), 1.0 / 24, 1e-9);
  s.fraction_of_ceiling = 0.9;
  s.ceiling_disturbed = true;
  EXPECT_FALSE(stopper->reason(s));
  s.ceiling_disturbed = false;
  s.fraction_of_ceiling = 0;
  EXPECT_FALSE(stopper->reason(s)) << "the ceiling is not known";
  s.fraction_of_ceiling = 1.5;
  EXPECT_FALSE(stopper->reason(s)) << "it is wrong";
  EXPECT_FALSE(stop_when_little_is_expected(0)->reason(s));
}

TEST(Stoppers, EachHasItsReason) {
  Standing s;
  s.evaluations = 10;
  s.elapsed_s = 60;
  s.fraction_of_ceiling = 0.96;
  s.since_best = 7;
  s.has_correct = true;
  EXPECT_TRUE(contains(*stop_after_evaluations(10)->reason(s), "10 evaluations"));
  EXPECT_FALSE(stop_after_evaluations(11)->reason(s));
  EXPECT_FALSE(stop_after_evaluations(0)->reason(s)) << "off";
  EXPECT_TRUE(stop_after_seconds(60)->reason(s));
  EXPECT_FALSE(stop_after_seconds(61)->reason(s));
  EXPECT_TRUE(contains(*stop_near_ceiling(0.95)->reason(s), "96 %"));
  EXPECT_FALSE(stop_near_ceiling(0.97)->reason(s));
  s.ceiling_disturbed = true;  // measured under other load: perhaps half the true one
  EXPECT_FALSE(stop_near_ceiling(0.95)->reason(s));
  s.ceiling_disturbed = false;
  s.fraction_of_ceiling = 1.15;  // it was beaten, so it is invalid
  EXPECT_FALSE(stop_near_ceiling(0.95)->reason(s));
  s.fraction_of_ceiling = 0.96;
  EXPECT_TRUE(stop_at_plateau(7)->reason(s));
  EXPECT_FALSE(stop_at_plateau(8)->reason(s));
  s.has_correct = false;
  EXPECT_FALSE(stop_near_ceiling(0.95)->reason(s));
}

TEST(Stoppers, TheFirstThatHoldsSpeaks) {
  std::vector<std::unique_ptr<Stopper>> all;
  all.push_back(stop_after_seconds(100));
  all.push_back(stop_after_evaluations(5));
  all.push_back(stop_at_plateau(1));
  const auto stopper = first_of(std::move(all));
  Standing s;
  EXPECT_FALSE(stopper->reason(s));
  s.evaluations = 5;
  s.since_best = 5;
  EXPECT_TRUE(contains(*stopper->reason(s), "5 evaluations are") ||
              contains(*stopper->reason(s), "budget of 5"));
}

}  // namespace
}  // namespace kernelpro
