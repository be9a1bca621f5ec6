// SPDX-License-Identifier: Apache-2.0
#include "suite/select.h"

#include <gtest/gtest.h>

#include "base/files.h"
#include "base/text.h"
#include "suite/arms.h"
#include "suite/settings.h"
#include "suite/testing.h"

namespace kernelpro {
namespace {

// A checkout in KernelBench's form with empty files.
class Checkout {
 public:
  Checkout() {
    for (int level = 1; level <= 4; ++level) {
      const std::string dir = join(folder_.path(), "KernelBench/level" + std::to_string(level));
      EXPECT_TRUE(make_dirs(dir));
      for (const int number : {1, 2, 9, 10, 23}) {
        EXPECT_TRUE(write_file(join(dir, std::to_string(number) + "_Task.py"), ""));
      }
      EXPECT_TRUE(write_file(join(dir, "README.md"), ""));
    }
  }
  SelectSettings settings() const {
    SelectSettings s;
    s.suite = folder_.path();
    return s;
  }
  const std::string& path() const { return folder_.path(); }

 private:
  TempDir folder_;
};

std::string labels(const Result<Selection>& selection) {
  if (!selection) return selection.error().text();
  std::vector<std::string> names;
  for (const SuiteTask& task : selection->tasks) names.push_back(task_label(task));
  return join_text(names, " ");
}

TEST(Select, LevelsRangesAndTheBuiltInList) {
  const Checkout checkout;
  SelectSettings s = checkout.settings();
  const auto all = select_tasks(s);
  EXPECT_EQ(labels(all), "1/1 1/2 1/9 1/10 2/1 2/2 2/10 3/1 3/2 3/9 3/10 3/23");
  ASSERT_EQ(all->excluded.size(), 3u);  // 1/23, 2/9, 2/23
  EXPECT_EQ(all->excluded[0].label, "1/23");
  EXPECT_TRUE(contains(all->excluded[0].reason, "zeros pass"));
  EXPECT_EQ(all->excluded[0].by, "built-in");
  EXPECT_EQ(all->tasks[0].name, "level1-1_Task");
  s.levels = "2,4";
  s.range = "2-9";
  EXPECT_EQ(labels(select_tasks(s)), "2/2 4/2 4/9");
  s.degenerate = true;
  EXPECT_EQ(labels(select_tasks(s)), "2/2 2/9 4/2 4/9");
  SelectSettings named = checkout.settings();
  named.tasks = "3/23, 1/2";
  EXPECT_EQ(labels(select_tasks(named)), "1/2 3/23");
}

TEST(Select, OwnListsOfBothKinds) {
  const Checkout checkout;
  SelectSettings s = checkout.settings();
  s.tasks = "1/1,1/2,3/1";
  s.exclude = join(checkout.path(), "list.csv");
  ASSERT_TRUE(write_file(s.exclude, "# comment\n1/2,\"too large, here\"\n"));
  const auto csv = select_tasks(s);
  EXPECT_EQ(labels(csv), "1/1 3/1");
  EXPECT_EQ(csv->excluded.at(0).reason, "too large, here");
  s.exclude = join(checkout.path(), "list.toml");
  ASSERT_TRUE(write_file(s.exclude, "[[exclude]]\ntask = \"3/1\"\nreason = \"slow\"\n"));
  EXPECT_EQ(labels(select_tasks(s)), "1/1 1/2");
  for (const char* text : {"1/2\n", "1/2, \n", ",why\n", "1/99,why\n"}) {
    s.exclude = join(checkout.path(), "bad.csv");
    ASSERT_TRUE(write_file(s.exclude, text));
    EXPECT_FALSE(select_tasks(s)) << text;
  }
  EXPECT_TRUE(contains(parse_exclusions("[[exclude]]\ntask = \"1/1\"\n", "x.toml").error().text(),
                       "x.toml, line 1: 1/1 is left out without a reason"));
  EXPECT_FALSE(parse_exclusions("[[exclude", "x.toml"));
}

TEST(Select, ASampleIsARuleNotAChoice) {
  const Checkout checkout;
  SelectSettings s = checkout.settings();
  s.sample = 2;
  const auto first = select_tasks(s);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->tasks.size(), 6u);
  EXPECT_EQ(labels(first), labels(select_tasks(s)));
  EXPECT_TRUE(contains(first->rule, "the 2 of each level with the smallest XXH3-128"));
  s.seed = 2;
  EXPECT_NE(labels(first), labels(select_tasks(s)));
}

TEST(Select, Faults) {
  const Checkout checkout;
  const TempDir empty;
  struct Fault {
    const char* levels;
    const char* range;
    const char* tasks;
    int sample;
    const char* message;
  };
  for (const Fault& f : {Fault{"1", "", "1/1", 0, "--levels chooses others"},
                         {"", "", "1/1", 3, "--sample"},
                         {"7", "", "", 0, "no level \"7\""},
                         {"x", "", "", 0, "no level \"x\""},
                         {"", "9-2", "", 0, "not a range"},
                         {"", "a", "", 0, "not a range"},
                         {"", "50-60", "", 0, "no task is left"},
                         {"", "", "1/77", 0, "no task \"1/77\""},
                         {"", "", "1/23", 0, "no task is left"}}) {
    SelectSettings s = checkout.settings();
    s.levels = f.levels;
    s.range = f.range;
    s.tasks = f.tasks;
    s.sample = f.sample;
    const auto selection = select_tasks(s);
    ASSERT_FALSE(selection) << f.message;
    EXPECT_TRUE(contains(selection.error().message, f.message)) << selection.error().message;
    EXPECT_FALSE(selection.error().next.empty());
  }
  SelectSettings s;
  s.suite = empty.path();
  EXPECT_TRUE(contains(labels(select_tasks(s)), "neither KernelBench's levels nor"));
  s.suite = join(empty.path(), "none");
  EXPECT_TRUE(contains(labels(select_tasks(s)), "there is no folder"));
  s.suite = std::string(KERNELPRO_SOURCE_DIR) + "/examples/softmax";
  EXPECT_TRUE(contains(labels(select_tasks(s)), "is one task"));
  s.suite = std::string(KERNELPRO_SOURCE_DIR) + "/examples";
  EXPECT_EQ(labels(select_tasks(s)), "layernorm matmul softmax");
  s.levels = "1";
  EXPECT_TRUE(contains(labels(select_tasks(s)), "are for KernelBench"));
}

std::string names(const Result<std::vector<Arm>>& arms) {
  if (!arms) return arms.error().text();
  std::vector<std::string> list;
  for (const Arm& arm : *arms) list.push_back(arm.name);
  return join_text(list, " ");
}

TEST(Arms, OneByOneOrCrossed) {
  EXPECT_EQ(names(parse_arms({}, false)), "base");
  EXPECT_EQ(names(parse_arms({"feedback=none, raw"}, false)), "feedback=none feedback=raw");
  EXPECT_EQ(names(parse_arms({"feedback=none,raw", "seed=2"}, false)),
            "feedback=none feedback=raw seed=2");
  EXPECT_EQ(names(parse_arms({"feedback=none,raw", "seed=2,3"}, true)),
            "feedback=none,seed=2 feedback=none,seed=3 feedback=raw,seed=2 feedback=raw,seed=3");
  RunSettings base;
  base.seed = 7;
  const auto arms = parse_arms({"feedback=none,raw", "seed=2"}, false);
  EXPECT_EQ(settings_of((*arms)[0], base).feedback, Feedback::kNone);
  EXPECT_EQ(settings_of((*arms)[0], base).seed, 7u);
  EXPECT_EQ(settings_of((*arms)[2], base).seed, 2u);
}

TEST(Arms, Faults) {
  EXPECT_TRUE(contains(names(parse_arms({"colour=red"}, false)), "names nothing"));
  EXPECT_TRUE(contains(names(parse_arms({"feedback"}, false)), "names nothing"));
  EXPECT_TRUE(contains(names(parse_arms({"feedback=loud"}, false)), "cannot be \"loud\""));
  EXPECT_TRUE(contains(names(parse_arms({"seed=-1"}, false)), "cannot be \"-1\""));
  EXPECT_TRUE(contains(names(parse_arms({"seed=1,1"}, false)), "twice"));
  EXPECT_TRUE(contains(names(parse_arms({"seed=1", "seed=2"}, false)), "twice"));
  EXPECT_TRUE(contains(names(parse_arms({"seed=1,2"}, true)), "--cross"));
}

TEST(SuiteSettings, KeptAndComparedWithWhatIsAsked) {
  const TempDir folder;
  SuiteSettings s;
  s.directory = join(folder.path(), "out");
  s.suite = "/suites/a";
  s.rule = "All tasks.";
  s.tasks = {{"level1-2_T", "/suites/a/level1/2_T.py", 1, 2}};
  s.excluded = {{"1/3", "why", "built-in"}};
  s.arms = *parse_arms({"feedback=raw,none", "seed=2,3"}, true);
  s.precision = Precision::kTf32;
  s.run.max_evaluations = 17;
  ASSERT_TRUE(begin_suite(s));
  ASSERT_TRUE(begin_suite(s));  // the same settings: it continues
  const auto read = read_suite(s.directory);
  ASSERT_TRUE(read) << read.error().text();
  EXPECT_EQ(suite_to_json(*read), suite_to_json(s));
  EXPECT_EQ(read->directory, s.directory);
  SuiteSettings other = s;
  other.run.max_evaluations = 18;
  other.arms.pop_back();
  const auto refused = begin_suite(other);
  ASSERT_FALSE(refused);
  EXPECT_TRUE(contains(refused.error().message, "arms, max_evaluations (17 then, 18 now)"))
      << refused.error().message;
  ASSERT_TRUE(write_file(join(s.directory, "suite.json"), "{"));
  EXPECT_EQ(read_suite(s.directory).error().kind, ErrorKind::kStore);
  EXPECT_EQ(read_suite(folder.path()).error().kind, ErrorKind::kBadInput);
  other.directory = folder.path();  // not empty
  EXPECT_FALSE(begin_suite(other));
}

}  // namespace
}  // namespace kernelpro
