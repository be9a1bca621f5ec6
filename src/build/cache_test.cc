// SPDX-License-Identifier: Apache-2.0
#include "build/cache.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <ctime>
#include <thread>
#include <vector>

#include "base/files.h"
#include "base/text.h"
#include "build/cached.h"

namespace kernelpro {
namespace {

std::string stage_with(const BuildCache& cache, const std::string& bytes) {
  const std::string folder = cache.stage().value();
  Binary binary;
  binary.case_name = "small";
  binary.hash = "abc";
  binary.shared_object = join(folder, "kernel.so");
  binary.resources["k"] = {32, 0, 4, 8, 1024};
  EXPECT_TRUE(write_file(binary.shared_object, bytes));
  EXPECT_TRUE(write_build(folder, binary));
  return folder;
}

TEST(BuildCache, PublishesAndFinds) {
  const TempDir dir;
  const BuildCache cache(dir.path());
  EXPECT_FALSE(cache.lookup("k1"));
  const std::string folder = cache.publish(stage_with(cache, "code"), "k1").value();
  ASSERT_EQ(cache.lookup("k1"), folder);
  const std::optional<Build> build = read_build(folder);
  ASSERT_TRUE(build);
  const Binary& binary = std::get<Binary>(*build);
  EXPECT_EQ(binary.shared_object, join(folder, "kernel.so"));
  EXPECT_EQ(binary.case_name, "small");
  EXPECT_EQ(binary.resources.at("k").spill_load_bytes, 8);
}

// A compiler killed by the machine is no evidence about the source.
TEST(BuildCache, AKilledCompilerIsRunAgain) {
  const TempDir dir;
  const BuildCache cache(dir.path());
  int runs = 0;
  int kills = 2;
  const auto make = [&](const std::string&) -> Result<Made> {
    if (++runs <= kills) return Made{CompileError{"x"}, false, "was ended by signal 9 (Killed)"};
    return Made{CompileError{"kernel.cpp:1: error"}, true};
  };
  const CompileResult twice = cached_build(cache, "twice", "small", make);
  ASSERT_TRUE(twice) << twice.error().text();
  EXPECT_EQ(std::get<CompileError>(*twice).log, "kernel.cpp:1: error");
  EXPECT_EQ(runs, 3);
  runs = 0;
  kills = 100;
  const CompileResult always = cached_build(cache, "always", "small", make);
  ASSERT_FALSE(always);
  EXPECT_EQ(always.error().kind, ErrorKind::kEnvironment);
  EXPECT_TRUE(contains(always.error().text(), "signal 9")) << always.error().text();
  EXPECT_EQ(runs, kMostKilledCompilers);
  EXPECT_FALSE(cache.lookup("always"));
}

TEST(BuildCache, TellsKilledCompilersFromSourcesThatFail) {
  const auto killed = [](const std::string& output) {
    Exit exit;
    exit.code = 1;
    exit.output = output;
    return !killed_from_outside(exit).empty();
  };
  const std::string gcc = "g++: fatal error: Killed signal terminated program cc1plus";
  EXPECT_TRUE(killed(gcc + "\ncompilation terminated.\n"));
  EXPECT_TRUE(killed("c++: fatal error: Terminated signal terminated program cc1plus\n"));
  EXPECT_TRUE(
      killed("collect2: fatal error: ld terminated with signal 9 [Killed]\n"
             "compilation terminated.\n"));
  EXPECT_TRUE(killed("clang++: error: unable to execute command: Killed\n"));
  EXPECT_TRUE(killed("nvcc error   : 'cicc' died due to signal 9 (Kill signal)\n"));
  // The compiler's own crash, and sources that print such messages.
  EXPECT_FALSE(killed("g++: fatal error: Segmentation fault signal terminated program cc1plus\n"));
  EXPECT_FALSE(killed("nvcc error   : 'cicc' died due to signal 11 (Invalid memory reference)\n"));
  EXPECT_FALSE(killed("kernel.cpp:1:2: error: #error " + gcc + "\n"));
  EXPECT_FALSE(killed(gcc + "\ncompilation terminated.:1:2: error: #error x\n    1 | #error x\n"));
  EXPECT_FALSE(killed(gcc + "\nkernel.cpp:3: error: no\n"));
}

TEST(BuildCache, KeepsCompileErrors) {
  const TempDir dir;
  const BuildCache cache(dir.path());
  const std::string folder = cache.stage().value();
  ASSERT_TRUE(write_build(folder, CompileError{"kernel.cpp:3: error: \xff no"}));
  const std::optional<Build> build = read_build(cache.publish(folder, "bad").value());
  ASSERT_TRUE(build);
  EXPECT_NE(std::get<CompileError>(*build).log.find("kernel.cpp:3"), std::string::npos);
}

TEST(BuildCache, DamagedEntriesAreNotBelieved) {
  const TempDir dir;
  const BuildCache cache(dir.path());
  const std::string folder = cache.publish(stage_with(cache, "code"), "k").value();
  ASSERT_TRUE(write_file(join(folder, "kernel.so"), "c"));  // truncated
  EXPECT_FALSE(read_build(folder));
  const std::string again = cache.publish(stage_with(cache, "code"), "k").value();
  EXPECT_TRUE(read_build(again));
  ASSERT_TRUE(write_file(join(folder, "build.json"), "{\"format\": 1"));
  EXPECT_FALSE(read_build(folder));
}

TEST(BuildCache, ManyThreadsPublishTheSameEntry) {
  const TempDir dir;
  const BuildCache cache(dir.path());
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 10; ++i) {
        const Result<std::string> folder =
            cache.publish(stage_with(cache, "code"), "key" + std::to_string(i));
        ASSERT_TRUE(folder) << folder.error().text();
        EXPECT_TRUE(read_build(*folder));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(list_dir(join(dir.path(), "staging")).empty());
}

TEST(BuildCache, PrunesWhatWasNotUsedForLongest) {
  const TempDir dir;
  const BuildCache cache(dir.path(), 300 << 10);
  for (const char* key : {"old", "older", "fresh"}) {
    const std::string folder =
        cache.publish(stage_with(cache, std::string(200 << 10, 'x')), key).value();
    const std::time_t age = key == std::string("old")     ? 7200
                            : key == std::string("older") ? 9000
                                                          : 0;
    const timespec times[2] = {{std::time(nullptr) - age, 0}, {std::time(nullptr) - age, 0}};
    ASSERT_EQ(::utimensat(AT_FDCWD, folder.c_str(), times, 0), 0);
  }
  cache.prune();
  EXPECT_FALSE(cache.lookup("older"));
  EXPECT_FALSE(cache.lookup("old"));
  EXPECT_TRUE(cache.lookup("fresh"));
}

TEST(BuildCache, SaysWhyItCannotWrite) {
  const BuildCache cache("/proc/kernelpro-cannot-be-here");
  const Result<std::string> folder = cache.stage();
  ASSERT_FALSE(folder);
  EXPECT_EQ(folder.error().kind, ErrorKind::kStore);
}

}  // namespace
}  // namespace kernelpro
