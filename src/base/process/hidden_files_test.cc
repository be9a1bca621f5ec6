// SPDX-License-Identifier: Apache-2.0
#include "base/process/hidden_files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/files.h"
#include "base/process/sandbox.h"

namespace kernelpro {
namespace {

bool opens(const std::string& path, int how) { return Fd(::open(path.c_str(), how)).valid(); }

// In a child, because it cannot be undone.
TEST(HiddenFiles, CannotBeOpenedAndOthersCan) {
  if (landlock_version() == 0) GTEST_SKIP() << "no Landlock here";
  TempDir folder;
  for (const char* name : {"own", "other", "third"}) {
    ASSERT_TRUE(write_file(join(folder.path(), name), name));
  }
  const std::string hidden = join(folder.path(), "other");
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const bool done = hide_files({hidden});
    const bool kept = read_file(join(folder.path(), "own")) && read_file("/proc/self/status") &&
                      opens(join(folder.path(), "third"), O_WRONLY) && opens("/dev/null", O_RDWR);
    const bool held = !opens(hidden, O_RDONLY) && !opens(hidden, O_WRONLY);
    ::_exit(!done ? 2 : !kept ? 3 : !held ? 4 : 0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(*read_file(hidden), "other");
}

TEST(HiddenFiles, NoneAreHiddenEverywhere) { EXPECT_TRUE(hide_files({})); }

}  // namespace
}  // namespace kernelpro
