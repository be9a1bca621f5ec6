// SPDX-License-Identifier: Apache-2.0
#include "run/planted.h"

#include <gtest/gtest.h>

#include <set>

#include "search/mcts.h"
#include "search/searches.h"

namespace kernelpro {
namespace {

NodeResult at_ceiling(double time_us) { return {true, time_us, true, 0.97, 1, 1}; }
NodeResult far_from_it(double time_us) { return {true, time_us, false, 0.3, 2, 3}; }

// A line that a ceiling had closed for good is open again once the ceiling turned out too low; what
// is in flight and what proposers have exhausted stays so.
TEST(Planted, AnewItKnowsTheResultsOfToday) {
  Planted planted([] { return make_mcts(); });
  planted.place(0, 1, at_ceiling(100));
  EXPECT_FALSE(planted.start()) << "nothing is left to gain over the root";
  planted.replant([](std::int64_t) { return far_from_it(100); });
  const auto turn = planted.start();
  ASSERT_TRUE(turn);
  EXPECT_EQ(turn->parent, 1);
  planted.replant([](std::int64_t) { return far_from_it(100); });
  EXPECT_EQ(planted.search().nodes().at(0).in_flight, 1);
  planted.finalize(1, 2, far_from_it(50));
  planted.close(1);
  planted.close(2);
  planted.replant([](std::int64_t id) { return far_from_it(id == 1 ? 100 : 50); });
  EXPECT_EQ(planted.search().nodes().size(), 2u);
  EXPECT_EQ(planted.search().nodes().at(0).in_flight, 0);
  EXPECT_FALSE(planted.start()) << "both are exhausted";
}

// Candidates without a parent, such as seeds, belong under the root, anew as well.
TEST(Planted, SeedsStayUnderTheRoot) {
  Planted planted([] { return make_mcts(); });
  planted.place(0, 1, far_from_it(100));
  planted.place(0, 7, far_from_it(80));
  planted.replant([](std::int64_t) { return far_from_it(90); });
  EXPECT_EQ(planted.search().nodes().at(1).parent, 1);
}

// A tuner's settings of a source do not compete with it: they are the node.
TEST(Planted, ASourceIsOneNodeAtItsFastestSetting) {
  Planted planted([] { return make_mcts(); });
  planted.place(0, 1, far_from_it(100), "start");
  planted.place(1, 2, far_from_it(90), "a");
  planted.place(2, 3, far_from_it(50), "a");
  planted.place(2, 4, far_from_it(95), "a");
  planted.place(3, 5, far_from_it(60), "b");
  const auto nodes = planted.search().nodes();
  ASSERT_EQ(nodes.size(), 3u);
  EXPECT_EQ(nodes[1].id, 2);
  EXPECT_EQ(nodes[2].parent, 2) << "a child of a setting is the source's";
  // Whenever the node is picked, its fastest setting is what is built on.
  std::set<std::int64_t> parents;
  for (int i = 0; i < 6; ++i) parents.insert(planted.start()->parent);
  EXPECT_EQ(parents.count(2), 0u);
  EXPECT_EQ(parents.count(4), 0u);
  EXPECT_EQ(parents.count(3), 1u);
  planted.finalize(3, 6, far_from_it(45), "a");
  EXPECT_EQ(planted.start_on(3).parent, 6);
  planted.close(6);
  EXPECT_FALSE(planted.may_start_on(3));
  planted.replant([](std::int64_t id) { return far_from_it(id == 4 ? 10 : 100); });
  EXPECT_EQ(planted.start_on(2).parent, 4);
}

// A source whose first setting failed is no wall once another one works.
TEST(Planted, ASettingThatWorksOpensItsSource) {
  Planted planted([] { return make_mcts(); });
  planted.place(0, 1, far_from_it(100), "start");
  planted.place(1, 2, NodeResult(), "a");
  EXPECT_TRUE(planted.search().nodes().at(1).closed);
  planted.place(2, 3, far_from_it(50), "a");
  EXPECT_FALSE(planted.search().nodes().at(1).closed);
}

// Branches seed a round with the fastest that are open when it begins: it matters whether a line
// was closed before or after.
TEST(Planted, ClosesLinesWhereTheyWereClosed) {
  const SearchMaker make = [] {
    SearchParameters parameters;
    parameters.ideas = 2;
    parameters.implementations = 1;
    parameters.bank = 2;
    return std::move(*make_search("branches", parameters, 1));
  };
  const auto two_turns = [](Planted& planted) {
    std::vector<std::int64_t> parents;
    for (int i = 0; i < 2; ++i) {
      const auto turn = planted.start();
      parents.push_back(turn ? turn->parent : 0);
    }
    for (const std::int64_t parent : parents) planted.cancel(parent);
    return parents;
  };
  Planted live(make);
  live.place(0, 1, far_from_it(100));
  live.place(1, 2, far_from_it(50));
  live.close(2);
  live.place(1, 3, far_from_it(60));
  EXPECT_EQ(two_turns(live), (std::vector<std::int64_t>{3, 1}));
  live.replant([](std::int64_t id) { return far_from_it(id == 1 ? 100 : id == 2 ? 50 : 60); });
  EXPECT_EQ(two_turns(live), (std::vector<std::int64_t>{3, 1}));
  Planted resumed(make);
  resumed.expect({{2, 2, "tuner"}});
  resumed.place(0, 1, far_from_it(100));
  resumed.place(1, 2, far_from_it(50));
  resumed.place(1, 3, far_from_it(60));
  EXPECT_EQ(two_turns(resumed), (std::vector<std::int64_t>{3, 1}));
}

}  // namespace
}  // namespace kernelpro
