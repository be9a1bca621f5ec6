// SPDX-License-Identifier: Apache-2.0
#include "search/searches.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/files.h"
#include "base/text.h"
#include "search/testing.h"

namespace kernelpro {
namespace {

using searching::start;

std::unique_ptr<Search> made(std::string_view name, const SearchParameters& parameters = {},
                             std::uint64_t seed = 1) {
  auto search = make_search(name, parameters, seed);
  EXPECT_TRUE(search) << (search ? "" : search.error().text());
  return search ? std::move(*search) : nullptr;
}

// Starts, finalizes with `time`, and gives the parent.
std::int64_t turn(Search& search, std::int64_t child, double time) {
  const auto parent = start(search);
  EXPECT_TRUE(parent);
  if (!parent) return 0;
  search.finalize(*parent, child, {time > 0, time});
  return *parent;
}

// A landscape that depends on ids only: parents and times.
double time_of(std::int64_t parent, std::int64_t child) {
  const std::int64_t mixed = (parent * 31 + child * 17) % 23;
  return mixed < 5 ? 0 : 50.0 + static_cast<double>(mixed);
}

TEST(Searches, EveryRowHasItsFileAndEveryFileItsRow) {
  std::set<std::string> files;
  const std::set<std::string> others = {"searches.cc", "parameters.cc", "tree.cc", "stoppers.cc"};
  for (const std::string& name : list_dir(KERNELPRO_SOURCE_DIR "/src/search")) {
    if (name.ends_with(".cc") && !name.ends_with("_test.cc") && others.count(name) == 0) {
      files.insert(name);
    }
  }
  std::set<std::string> rows;
  for (const SearchRow& row : searches()) {
    std::string file = std::string(row.name) + ".cc";
    std::replace(file.begin(), file.end(), '-', '_');
    rows.insert(file);
    EXPECT_FALSE(row.summary.empty());
    EXPECT_EQ(made(row.name)->name(), row.name);
  }
  EXPECT_EQ(rows, files);
}

TEST(Searches, AnUnknownNameIsAnErrorThatListsThoseThereAre) {
  const auto search = make_search("mtcs", {}, 1);
  ASSERT_FALSE(search);
  EXPECT_EQ(search.error().kind, ErrorKind::kBadInput);
  EXPECT_TRUE(contains(search.error().message, "mtcs"));
  for (const SearchRow& row : searches()) {
    EXPECT_TRUE(contains(search.error().next, std::string(row.name)));
  }
  const auto preset = make_preset_search("", "papers", 1);
  ASSERT_FALSE(preset);
  EXPECT_TRUE(contains(preset.error().next, "default, paper, stanford"));
}

TEST(Searches, SettingsThatMeanNothingAreRefused) {
  SearchParameters parameters;
  parameters.beam_width = 0;
  const auto beam = make_search("beam", parameters, 1);
  ASSERT_FALSE(beam);
  EXPECT_TRUE(contains(beam.error().message, "beam_width cannot be 0"));
  parameters = {};
  parameters.exploration = std::nan("");
  EXPECT_FALSE(make_search("mcts", parameters, 1));
  parameters = {};
  parameters.temperatures = {0.5};
  const auto no_seeds = make_search("mcts", parameters, 1);
  ASSERT_FALSE(no_seeds);
  EXPECT_TRUE(contains(no_seeds.error().message, "there are no seeds"));
  parameters.seeds = 1;
  EXPECT_TRUE(make_search("mcts", parameters, 1));
  parameters.temperatures = {3};
  EXPECT_FALSE(make_search("mcts", parameters, 1));
}

TEST(Searches, PresetsAreSettingsOfTheirSearch) {
  EXPECT_EQ((*make_preset_search("", "default", 1))->name(), "mcts");
  EXPECT_EQ((*make_preset_search("beam", "default", 1))->name(), "beam");
  EXPECT_EQ((*make_preset_search("", "paper", 1))->name(), "mcts");
  EXPECT_EQ((*make_preset_search("branches", "stanford", 1))->name(), "branches");
  const auto conflict = make_preset_search("greedy", "stanford", 1);
  ASSERT_FALSE(conflict);
  EXPECT_TRUE(contains(conflict.error().message, "a setting of branches, not of greedy"));
  for (const Preset& preset : presets()) EXPECT_TRUE(check(preset.parameters())) << preset.name;
}

TEST(Searches, APaperRunBeginsWithSeedsOfFiveTemperaturesThreeTimes) {
  const auto search = *make_preset_search("", "paper", 1);
  search->add_root(1, {true, 100});
  std::map<double, int> asked;
  for (std::int64_t child = 2; child < 17; ++child) {
    const Turn turn = search->start().value_or(Turn());
    EXPECT_EQ(turn.parent, 1);
    EXPECT_EQ(turn.wanted, 1);
    ++asked[turn.temperature];
    search->finalize(1, child, {child % 3 != 0, 90});
  }
  ASSERT_EQ(asked.size(), 5u);
  for (const auto& [temperature, times] : asked) EXPECT_EQ(times, 3) << temperature;
  const auto next = search->start();
  ASSERT_TRUE(next);
  EXPECT_EQ(next->wanted, 2);
  EXPECT_LT(next->temperature, 0);
}

// Requirements for every search.
TEST(Searches, EachGoesOnAfterARestoreAsItWould) {
  for (const SearchRow& row : searches()) {
    for (const char* preset : {"default", "paper", "stanford"}) {
      const SearchParameters parameters = (*find_preset(preset))->parameters();
      const auto live = made(row.name, parameters);
      live->add_root(1, {true, 100});
      std::vector<std::pair<std::int64_t, std::int64_t>> steps;
      for (std::int64_t child = 2; child < 120; ++child) {
        const auto parent = start(*live);
        ASSERT_TRUE(parent) << row.name;
        const double time = time_of(*parent, child);
        live->finalize(*parent, child, {time > 0, time});
        steps.emplace_back(*parent, child);
      }
      for (const std::size_t cut : {0u, 14u, 15u, 60u, 117u}) {
        const auto restored = made(row.name, parameters);
        restored->add_root(1, {true, 100});
        for (std::size_t i = 0; i < steps.size(); ++i) {
          const auto [parent, child] = steps[i];
          const double time = time_of(parent, child);
          if (i < cut) {
            restored->restore(parent, child, {time > 0, time});
            continue;
          }
          ASSERT_EQ(start(*restored), parent) << row.name << ", cut at " << cut << ", step " << i;
          restored->finalize(parent, child, {time > 0, time});
        }
      }
    }
  }
}

TEST(Searches, EachBuildsOnAFailedRootAndNeverOnAnyOtherFailure) {
  for (const SearchRow& row : searches()) {
    const auto search = made(row.name);
    search->add_root(1, {});
    for (std::int64_t child = 2; child < 45; ++child) {
      EXPECT_EQ(turn(*search, child, 0), 1) << row.name;
    }
    EXPECT_EQ(search->nodes()[7].reason, "failed") << row.name;
    EXPECT_EQ(turn(*search, 45, 10), 1) << row.name;
    const auto next = start(*search);
    EXPECT_TRUE(next == 1 || next == 45) << row.name;
  }
}

TEST(Searches, EachEndsWhenAllIsClosedAndCountsWhatIsInFlight) {
  for (const SearchRow& row : searches()) {
    const auto search = made(row.name);
    EXPECT_FALSE(start(*search)) << "there is no root yet";
    search->add_root(1, {true, 100});
    ASSERT_EQ(start(*search), 1) << row.name;
    EXPECT_EQ(search->nodes()[0].in_flight, 1) << row.name;
    search->cancel(1);
    EXPECT_EQ(search->nodes()[0].in_flight, 0) << row.name;
    search->restore(1, 2, {true, 50});
    search->restore(1, 3, {true, 40, true});
    for (const std::int64_t id : {1, 2}) search->close(id);
    EXPECT_FALSE(start(*search)) << row.name;
    const auto nodes = search->nodes();
    ASSERT_EQ(nodes.size(), 3u);
    EXPECT_EQ(nodes[1].reason, "its proposer has nothing more to add") << row.name;
    EXPECT_EQ(nodes[2].reason, "its diagnosis says nothing is left") << row.name;
  }
}

TEST(Searches, NoneBuildsOnWhatIsAtTheCeilingWhileThereAreOthersNorEndsBeforeIt) {
  for (const SearchRow& row : searches()) {
    const auto search = made(row.name);
    search->add_root(1, {true, 100, true, 0.9});
    ASSERT_EQ(start(*search), 1) << row.name;
    search->finalize(1, 2, {true, 110, false, 0.8});
    if (row.name == "best-of-n") continue;  // it only uses the root
    for (int i = 0; i < 6; ++i) {
      ASSERT_EQ(start(*search), 2) << row.name;
      search->finalize(2, 3 + i, {});
    }
    search->close(2);
    ASSERT_EQ(start(*search), 1) << row.name << ": what is left, be it little";
    search->cancel(1);
    search->close(1);
    EXPECT_FALSE(start(*search)) << row.name;
  }
}

TEST(Greedy, BuildsOnTheFastest) {
  const auto search = made("greedy");
  search->add_root(1, {true, 100});
  EXPECT_EQ(turn(*search, 2, 80), 1);
  EXPECT_EQ(turn(*search, 3, 90), 2);
  EXPECT_EQ(turn(*search, 4, 0), 2);
  EXPECT_EQ(turn(*search, 5, 70), 2);
  EXPECT_EQ(turn(*search, 6, 70), 5);
  search->close(5);
  EXPECT_EQ(start(*search), 6);
}

TEST(BestOfN, TriesTheRootAlone) {
  SearchParameters parameters;
  parameters.tries = 5;
  const auto search = made("best-of-n", parameters);
  search->add_root(1, {true, 100});
  for (std::int64_t child = 2; child < 7; ++child) EXPECT_EQ(turn(*search, child, 10), 1);
  EXPECT_FALSE(start(*search)) << "that was n";
}

TEST(Beam, WhoHadHisTriesLeavesAndTheNextFastestComesIn) {
  SearchParameters parameters;
  parameters.beam_width = 2;
  parameters.beam_tries = 3;
  const auto search = made("beam", parameters);
  search->add_root(1, {true, 100});
  search->restore(1, 2, {true, 50});
  search->restore(1, 3, {true, 60});
  const std::vector<std::int64_t> expected = {2, 3, 2, 3, 2, 4, 4, 3, 5};
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(turn(*search, 4 + static_cast<std::int64_t>(i), 90), expected[i]) << i;
  }
}

TEST(Branches, ARoundIsSharedOutAmongTheBank) {
  SearchParameters parameters;
  parameters.ideas = 4;
  parameters.implementations = 2;
  parameters.bank = 2;
  const auto search = made("branches", parameters);
  search->add_root(1, {true, 100});
  // The first round uses only the root, however good its children are.
  for (std::int64_t child = 2; child < 10; ++child) {
    const Turn turn = search->start().value_or(Turn());
    EXPECT_EQ(turn.parent, 1);
    EXPECT_EQ(turn.wanted, child % 2 == 0 ? 2 : 1) << "what is left of the idea";
    search->finalize(1, child, {true, 110.0 - 5.0 * static_cast<double>(child)});
  }
  // The two fastest, idea by idea.
  const std::vector<std::int64_t> expected = {9, 9, 8, 8, 9, 9, 8, 8};
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(turn(*search, 10 + static_cast<std::int64_t>(i), 1), expected[i]) << i;
  }
  EXPECT_EQ(turn(*search, 30, 1), 10) << "a new round, a new bank";
}

TEST(Branches, ARoundWaitsForTheOneBeforeIt) {
  SearchParameters parameters;
  parameters.ideas = 2;
  parameters.implementations = 1;
  const auto search = made("branches", parameters);
  search->add_root(1, {true, 100});
  ASSERT_EQ(start(*search), 1);
  ASSERT_EQ(start(*search), 1);
  EXPECT_FALSE(start(*search));
  search->finalize(1, 2, {true, 90});
  EXPECT_FALSE(start(*search));
  search->finalize(1, 3, {true, 80});
  EXPECT_EQ(start(*search), 3);
}

TEST(Random, DrawsByItsSeed) {
  std::set<std::vector<std::int64_t>> courses;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const auto search = made("random", {}, seed);
    search->add_root(1, {true, 100});
    std::vector<std::int64_t> course;
    for (std::int64_t child = 2; child < 12; ++child) course.push_back(turn(*search, child, 50));
    courses.insert(course);
  }
  EXPECT_EQ(courses.size(), 20u);
}

}  // namespace
}  // namespace kernelpro
