// SPDX-License-Identifier: Apache-2.0
// The user's memory on disk: real SQLite, real processes, real damage.
#include "run/store/fact_file.h"

#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "base/files.h"
#include "base/sqlite.h"
#include "base/text.h"

namespace kernelpro {
namespace {

Fact fact_named(const std::string& candidate) {
  Fact f;
  f.machine = "box";
  f.family = {"softmax"};
  f.task = "softmax";
  f.task_hash = "t1";
  f.candidate = candidate;
  f.idea = "idea of " + candidate;
  f.outcome = OutcomeKind::kCorrect;
  return f;
}

struct FactFileTest : ::testing::Test {
  TempDir dir;
  std::string path = join(dir.path(), "state/facts.db");

  std::vector<std::string> ideas() {
    FactFile file(path);
    const auto all = file.read_all();
    EXPECT_TRUE(all) << all.error().text();
    std::vector<std::string> names;
    for (const Fact& fact : *all) names.push_back(fact.idea);
    return names;
  }
  std::string set_aside(const char* number) const { return path + ".damaged-" + number; }
};

TEST_F(FactFileTest, LiesInTheStateFolder) {
  ::setenv("KERNELPRO_STATE", dir.path().c_str(), 1);
  EXPECT_EQ(user_facts_path(), join(dir.path(), "facts.db"));
  ::unsetenv("KERNELPRO_STATE");
}

TEST_F(FactFileTest, ReadingMakesNoFile) {
  EXPECT_TRUE(ideas().empty());
  EXPECT_FALSE(exists(path));
}

TEST_F(FactFileTest, KeepsWhatIsAddedInOrder) {
  FactFile file(path);
  EXPECT_EQ(*file.add("run1", {fact_named("a"), fact_named("b")}), 2);
  EXPECT_EQ(*file.add("run1", {fact_named("b"), fact_named("c")}), 1) << "b was there";
  EXPECT_EQ(*file.add("run2", {fact_named("b")}), 1) << "of another run it is another fact";
  EXPECT_EQ(ideas(),
            (std::vector<std::string>{"idea of a", "idea of b", "idea of c", "idea of b"}));
  const auto all = file.read_all();
  EXPECT_FALSE(all->front().when.empty());
  EXPECT_EQ(file.take_note(), "");
}

TEST_F(FactFileTest, GivesWhatIsOfUse) {
  FactFile file(path);
  Fact scan = fact_named("s");
  scan.family = {"scan"};
  scan.task_hash = "t2";
  Fact cuda = fact_named("g");
  cuda.target = TargetKind::kCuda;
  ASSERT_TRUE(file.add("run", {fact_named("a"), scan, cuda, fact_named("b")}));
  const auto names = [&](const std::vector<std::string>& family, const std::string& task,
                         std::size_t most) {
    std::string text;
    const auto some = file.read(TargetKind::kCpu, family, task, most);
    EXPECT_TRUE(some);
    for (const Fact& fact : *some) text += fact.candidate;
    return text;
  };
  EXPECT_EQ(names({"softmax"}, "", 10), "ab");
  EXPECT_EQ(names({"softmax"}, "", 1), "b") << "the latest";
  EXPECT_EQ(names({"softmax"}, "t2", 10), "asb") << "the same task, whatever its family";
  EXPECT_EQ(names({}, "", 10), "asb");
  EXPECT_EQ(names({"pooling"}, "", 10), "");
}

// The file itself is append-only, whatever process writes.
TEST_F(FactFileTest, NothingIsChangedOrRemoved) {
  ASSERT_TRUE(FactFile(path).add("run", {fact_named("a")}));
  Database db;
  ASSERT_EQ(db.open(path, Database::Mode::kWrite), SQLITE_OK);
  EXPECT_NE(db.execute("UPDATE facts SET json = '{}'"), SQLITE_OK);
  EXPECT_NE(db.execute("DELETE FROM facts"), SQLITE_OK);
  for (const char* key : {"id, 'r', 'c'", "NULL, run, candidate"}) {
    const std::string replace = "INSERT OR REPLACE INTO facts SELECT " + std::string(key) +
                                ", at, target, task_hash, family, '{}' FROM facts";
    EXPECT_EQ(db.execute(replace.c_str()), SQLITE_OK);
  }
  db.close();
  Fact other = fact_named("a");
  other.idea = "something else";
  ASSERT_TRUE(FactFile(path).add("run", {other}));
  EXPECT_EQ(ideas(), std::vector<std::string>{"idea of a"});
}

// Exit status of a child that adds `count` facts of its own, one at a time.
int add_in_child(const std::string& path, int who, int count) {
  FactFile file(path);
  for (int i = 0; i < count; ++i) {
    const std::string name = std::to_string(who) + "." + std::to_string(i);
    const auto added = file.add("run" + std::to_string(who), {fact_named(name)});
    if (!added || *added != 1) return 1;
  }
  return 0;
}

void expect_all_of_four(const std::string& path, std::size_t before) {
  std::vector<pid_t> children;
  for (int who = 0; who < 4; ++who) {
    const pid_t pid = ::fork();
    ASSERT_GE(pid, 0);
    if (pid == 0) ::_exit(add_in_child(path, who, 15));
    children.push_back(pid);
  }
  for (const pid_t pid : children) {
    int status = 0;
    ASSERT_EQ(::waitpid(pid, &status, 0), pid);
    EXPECT_EQ(status, 0);
  }
  const auto all = FactFile(path).read_all();
  ASSERT_TRUE(all) << all.error().text();
  EXPECT_EQ(all->size(), before + 60);
}

TEST_F(FactFileTest, SeveralProcessesBeginAndExtendIt) { expect_all_of_four(path, 0); }

// All four hit the damage; one sets the file aside, and none of their facts is lost with it.
TEST_F(FactFileTest, SeveralProcessesMeetADamagedOne) {
  ASSERT_TRUE(make_dirs(dirname(path)));
  ASSERT_TRUE(write_file(path, std::string(9000, '\x7f')));
  expect_all_of_four(path, 0);
  EXPECT_TRUE(exists(set_aside("1")));
  EXPECT_FALSE(exists(set_aside("2")));
}

TEST_F(FactFileTest, ADamagedFileIsSetAsideAndSaid) {
  ASSERT_TRUE(make_dirs(dirname(path)));
  for (const char* number : {"1", "2"}) {
    ASSERT_TRUE(write_file(path, "these are no facts, and this is no database " + path));
    FactFile file(path);
    const auto read = file.read(TargetKind::kCpu, {}, "", 10);
    ASSERT_TRUE(read) << read.error().text();
    EXPECT_TRUE(read->empty());
    const std::string note = file.take_note();
    EXPECT_TRUE(contains(note, set_aside(number))) << note;
    EXPECT_EQ(file.take_note(), "");
    EXPECT_TRUE(exists(set_aside(number)));
    ASSERT_TRUE(file.add("run", {fact_named("a")}));
    EXPECT_EQ(ideas().size(), 1u);
  }
}

// Damage after the header, found only when pages are read.
TEST_F(FactFileTest, DamageInTheMiddle) {
  std::vector<Fact> many;
  for (int i = 0; i < 200; ++i) many.push_back(fact_named("c" + std::to_string(i)));
  ASSERT_TRUE(FactFile(path).add("run", many));
  std::string bytes = *read_file(path);
  ASSERT_GT(bytes.size(), 40000u);
  std::fill(bytes.begin() + 8192, bytes.end(), '\xa5');
  ASSERT_TRUE(write_file(path, bytes));
  FactFile file(path);
  const auto added = file.add("run2", {fact_named("new")});
  ASSERT_TRUE(added) << added.error().text();
  EXPECT_TRUE(contains(file.take_note(), set_aside("1")));
  EXPECT_EQ(ideas(), std::vector<std::string>{"idea of new"});
}

TEST_F(FactFileTest, RowsThatSayNothingAreLeftOut) {
  ASSERT_TRUE(FactFile(path).add("run", {fact_named("a")}));
  Database db;
  ASSERT_EQ(db.open(path, Database::Mode::kWrite), SQLITE_OK);
  ASSERT_EQ(db.execute("INSERT INTO facts(run, candidate, at, target, task_hash, family, json) "
                       "VALUES('r', 'x', '', 'cpu', '', '', 'no json'), "
                       "('r', 'y', '', 'cpu', '', '', '{}')"),
            SQLITE_OK);
  db.close();
  FactFile file(path);
  const auto all = file.read_all();
  ASSERT_TRUE(all);
  EXPECT_EQ(all->size(), 1u);
  EXPECT_TRUE(contains(file.take_note(), "2 facts"));
}

// Neither file is ours to move.
TEST_F(FactFileTest, AnotherVersionsAndAnotherProgramsFileStay) {
  ASSERT_TRUE(FactFile(path).add("run", {fact_named("a")}));
  for (const char* change : {"PRAGMA user_version = 99", "PRAGMA application_id = 7"}) {
    Database db;
    ASSERT_EQ(db.open(path, Database::Mode::kWrite), SQLITE_OK);
    ASSERT_EQ(db.execute(change), SQLITE_OK);
    db.close();
    const std::string before = *read_file(path);
    FactFile file(path);
    const auto added = file.add("run", {fact_named("b")});
    ASSERT_FALSE(added);
    EXPECT_FALSE(added.error().next.empty());
    EXPECT_FALSE(file.read_all());
    EXPECT_EQ(*read_file(path), before);
    EXPECT_FALSE(exists(set_aside("1")));
  }
}

TEST_F(FactFileTest, AFolderThatCannotBeMadeIsAnError) {
  ASSERT_TRUE(write_file(join(dir.path(), "state"), "a file"));
  EXPECT_FALSE(FactFile(path).add("run", {fact_named("a")}));
}

}  // namespace
}  // namespace kernelpro
