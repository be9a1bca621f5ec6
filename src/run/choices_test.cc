// SPDX-License-Identifier: Apache-2.0
#include "run/choices.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/files.h"

namespace kernelpro {
namespace {

Task named(const std::string& name) {
  Task task;
  task.name = name;
  return task;
}

TEST(Choices, RunsThatBeginAtOnceGetFoldersOfTheirOwn) {
  const TempDir dir;
  const std::string runs = join(dir.path(), "runs");
  std::vector<std::string> folders(8);
  std::vector<std::thread> starters;
  for (std::string& folder : folders) {
    starters.emplace_back(
        [&] { folder = new_run_directory(named("a task"), TargetKind::kCpu, runs); });
  }
  for (std::thread& starter : starters) starter.join();
  EXPECT_EQ(std::set<std::string>(folders.begin(), folders.end()).size(), folders.size());
  for (const std::string& folder : folders) {
    EXPECT_TRUE(is_dir(folder)) << folder;
    EXPECT_TRUE(folder.starts_with(join(runs, "a_task-cpu-"))) << folder;
  }
}

TEST(Choices, AFolderInWhichNoRunBeganIsRemoved) {
  const TempDir dir;
  const std::string empty = new_run_directory(named("t"), TargetKind::kCpu, dir.path());
  const std::string used = new_run_directory(named("t"), TargetKind::kCpu, dir.path());
  ASSERT_TRUE(write_file(join(used, "kept"), "x"));
  drop_run_directory(empty);
  drop_run_directory(used);
  EXPECT_FALSE(exists(empty));
  EXPECT_TRUE(exists(used));
}

TEST(Choices, AFolderThatCannotBeMadeIsNamedAllTheSame) {
  const TempDir dir;
  const std::string file = join(dir.path(), "file");
  ASSERT_TRUE(write_file(file, "x"));
  const std::string folder = new_run_directory(named("t"), TargetKind::kCpu, file);
  EXPECT_TRUE(folder.starts_with(join(file, "t-cpu-"))) << folder;
}

}  // namespace
}  // namespace kernelpro
