// SPDX-License-Identifier: Apache-2.0
#include "base/files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

namespace kernelpro {
namespace {

TEST(Files, WritesAndReadsBack) {
  TempDir dir;
  const std::string path = join(dir.path(), "a");
  const std::string bytes("x\0y\n", 4);
  ASSERT_TRUE(write_file(path, bytes));
  EXPECT_EQ(*read_file(path), bytes);
  ASSERT_TRUE(write_file(path, "new"));
  EXPECT_EQ(*read_file(path), "new");
  EXPECT_EQ(list_dir(dir.path()), std::vector<std::string>{"a"});  // no temporary is left
}

TEST(Files, WhatCannotBeReadIsNamed) {
  TempDir dir;
  const std::string missing = join(dir.path(), "missing");
  const Result<std::string> none = read_file(missing);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().kind, ErrorKind::kBadInput);
  EXPECT_NE(none.error().message.find(missing), std::string::npos);
  EXPECT_FALSE(none.error().next.empty());
  EXPECT_FALSE(read_file(dir.path()));
  EXPECT_FALSE(read_file("/dev/zero"));
  ASSERT_TRUE(write_file(join(dir.path(), "big"), std::string(100, 'x')));
  EXPECT_FALSE(read_file(join(dir.path(), "big"), 99));
  EXPECT_TRUE(read_file(join(dir.path(), "big"), 100));
}

TEST(Files, AFullDiskAndAMissingFolderAreStoreErrors) {
  const Result<void> nowhere = write_file("/nonexistent-folder/x", "x");
  ASSERT_FALSE(nowhere);
  EXPECT_EQ(nowhere.error().kind, ErrorKind::kStore);
  TempDir dir;
  ASSERT_TRUE(write_file(join(dir.path(), "file"), ""));
  EXPECT_FALSE(make_dirs(join(dir.path(), "file/below")));
}

TEST(Files, Folders) {
  TempDir dir;
  const std::string deep = join(dir.path(), "a/b/c");
  ASSERT_TRUE(make_dirs(deep));
  ASSERT_TRUE(make_dirs(deep));
  EXPECT_TRUE(is_dir(deep));
  EXPECT_FALSE(is_dir(join(dir.path(), "x")));
  EXPECT_EQ(list_dir(join(dir.path(), "x")).size(), 0u);
  EXPECT_EQ(dirname("/a/b"), "/a");
  EXPECT_EQ(basename("/a/b.c"), "b.c");
  EXPECT_EQ(absolute("/a/../b/./c"), "/b/c");
}

TEST(Files, TemporaryFoldersGoWithTheirObject) {
  std::string path;
  {
    TempDir dir;
    path = dir.path();
    ASSERT_TRUE(write_file(join(path, "x"), "x"));
    EXPECT_TRUE(is_dir(path));
  }
  EXPECT_FALSE(exists(path));
}

TEST(Files, FindsProgramsOnThePath) {
  EXPECT_FALSE(find_program("sh").empty());
  EXPECT_EQ(find_program("no-such-program-anywhere"), "");
  EXPECT_EQ(find_program("/bin/sh"), "/bin/sh");
  TempDir dir;
  const std::string plain = join(dir.path(), "plain");
  ASSERT_TRUE(write_file(plain, "x"));
  EXPECT_EQ(find_program(plain), "");  // not executable
  EXPECT_TRUE(is_dir(executable_dir()));
}

TEST(Files, CacheFolderFollowsTheEnvironment) {
  setenv("KERNELPRO_CACHE", "/x/y", 1);
  EXPECT_EQ(cache_dir(), "/x/y");
  unsetenv("KERNELPRO_CACHE");
  setenv("XDG_CACHE_HOME", "/z", 1);
  EXPECT_EQ(cache_dir(), "/z/kernelpro");
  unsetenv("XDG_CACHE_HOME");
  EXPECT_FALSE(cache_dir().empty());
}

TEST(Files, DescriptorsAreClosedOnce) {
  const int raw = ::open("/dev/null", O_RDONLY);
  ASSERT_GE(raw, 0);
  {
    Fd a(raw);
    Fd b(std::move(a));
    EXPECT_FALSE(a.valid());  // NOLINT: a moved-from Fd holds nothing
    Fd c;
    c = std::move(b);
    EXPECT_EQ(c.get(), raw);
    EXPECT_EQ(::fcntl(raw, F_GETFD) >= 0, true);
  }
  EXPECT_LT(::fcntl(raw, F_GETFD), 0);
}

}  // namespace
}  // namespace kernelpro
