// SPDX-License-Identifier: Apache-2.0
// `kernelpro memory` through the real binary, on a run's store made here.
#include <gtest/gtest.h>

#include "base/files.h"
#include "base/json.h"
#include "base/process/subprocess.h"
#include "base/text.h"
#include "measure/station/testing/fake_target.h"
#include "run/store/store.h"

namespace kernelpro {
namespace {

struct MemoryTest : ::testing::Test {
  TempDir dir;
  std::string run_dir = join(dir.path(), "run");

  Exit kernelpro(std::vector<std::string> arguments) {
    Command command;
    command.argv = {join(executable_dir(), "kernelpro"), "memory"};
    command.argv.insert(command.argv.end(), arguments.begin(), arguments.end());
    command.env = {"KERNELPRO_STATE=" + dir.path(), "KERNELPRO_CACHE=" + dir.path()};
    command.limits.wall_seconds = 600;
    const auto exit = run(command);
    EXPECT_TRUE(exit.has_value());
    return exit ? *exit : Exit();
  }
  // A start, a faster candidate and one that fails.
  void make_run() {
    RunHeader header;
    header.task = testing::fake_task();
    header.task.name = "softmax";
    header.task.summary = "softmax along rows";
    header.machine.name = "a box";
    header.machine.target = "cpu";
    header.settings_json = "{}";
    header.created = "2026-01-02T03:04:05Z";
    auto store = Store::open(run_dir, Store::Mode::kCreate, &header);
    ASSERT_TRUE(store) << store.error().text();
    std::vector<Candidate> all(3);
    for (int i = 0; i < 3; ++i) {
      all[i].source = "int v" + std::to_string(i) + ";\n";
      all[i].origin = {"model", i == 0 ? 0 : 1, "Idea number " + std::to_string(i), {}};
    }
    ASSERT_TRUE((*store)->add(all));
    for (int i = 0; i < 3; ++i) {
      Correct correct;
      const double us = i == 0 ? 100 : 50;
      correct.timings.push_back({"large", us, us, us, 20, "calls in turn"});
      Evaluation evaluation;
      evaluation.outcome = i == 2 ? Outcome(CompileError{"k.cpp:1: error: no"}) : Outcome(correct);
      ASSERT_TRUE((*store)->finish(i + 1, evaluation, {}, {}, i));
    }
  }
};

TEST_F(MemoryTest, TakesWhatARunTaughtAndShowsIt) {
  const Exit empty = kernelpro({});
  EXPECT_TRUE(empty.ok()) << empty.output;
  EXPECT_TRUE(contains(empty.output, "nothing is remembered yet")) << empty.output;
  make_run();
  const Exit added = kernelpro({"add", run_dir});
  EXPECT_TRUE(added.ok()) << added.output;
  EXPECT_TRUE(contains(added.output, "2 facts, 2 of them new")) << added.output;
  EXPECT_TRUE(contains(kernelpro({"add", run_dir}).output, "2 facts, 0 of them new"));
  const Exit list = kernelpro({"list"});
  EXPECT_TRUE(contains(list.output, "2 facts, 1 correct, 1 faster, 0 cures")) << list.output;
  const Exit show = kernelpro({"show", "softmax"});
  EXPECT_TRUE(contains(show.output,
                       "2026-01-02T03:04:05Z  Idea number 1 (on softmax; on a box) => "
                       "2x its parent"))
      << show.output;
  EXPECT_TRUE(contains(show.output, "compile-error: `k.cpp:1: error: no`")) << show.output;
  EXPECT_FALSE(contains(kernelpro({"show", "-n", "1"}).output, "Idea number 1"));
  EXPECT_TRUE(contains(kernelpro({"show", "scan"}).output, "nothing like that"));
  const auto json = parse_json(kernelpro({"show", "--json"}).output);
  ASSERT_TRUE(json && json->is_array());
  EXPECT_EQ(json->size(), 2u);
}

TEST_F(MemoryTest, SaysWhatIsWrong) {
  const Exit nothing = kernelpro({"add"});
  EXPECT_EQ(nothing.code, 2);
  EXPECT_TRUE(contains(nothing.output, "memory add needs a run")) << nothing.output;
  EXPECT_FALSE(kernelpro({"add", join(dir.path(), "none")}).ok());
  EXPECT_FALSE(kernelpro({"forget"}).ok());
  // A file that is not a memory is not touched; listing a damaged memory does not move it.
  const std::string notes = join(dir.path(), "notes.txt"), torn = join(dir.path(), "torn.db");
  ASSERT_TRUE(write_file(notes, "buy bread"));
  ASSERT_TRUE(write_file(torn, std::string("SQLite format 3\0", 16) + std::string(5000, 'x')));
  for (const std::string& file : {notes, torn}) {
    const Exit other = kernelpro({"list", "--file", file});
    EXPECT_FALSE(other.ok());
    EXPECT_TRUE(contains(other.output, file + " is n")) << other.output;
  }
  EXPECT_EQ(kernelpro({"add", run_dir, "--file", notes}).code, 2);
  EXPECT_EQ(*read_file(notes), "buy bread");
  EXPECT_EQ(read_file(torn)->size(), 5016u);
  EXPECT_EQ(list_dir(dir.path()).size(), 2u) << join_text(list_dir(dir.path()), " ");

  ASSERT_TRUE(write_file(join(dir.path(), "facts.db"), "this is no database"));
  const Exit damaged = kernelpro({});
  EXPECT_TRUE(damaged.ok()) << damaged.output;
  EXPECT_TRUE(contains(damaged.output, "facts.db.damaged-1")) << damaged.output;
}

}  // namespace
}  // namespace kernelpro
