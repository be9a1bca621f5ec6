// SPDX-License-Identifier: Apache-2.0
// Real processes.
#include "base/process/subprocess.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <string>
#include <thread>

#include "base/cancel.h"
#include "base/clock.h"
#include "base/files.h"
#include "base/process/processes.h"
#include "base/testing.h"
#include "base/text.h"

namespace kernelpro {
namespace {

Command shell(const std::string& script) {
  Command command;
  command.argv = {"/bin/sh", "-c", script};
  command.limits.wall_seconds = 20;
  return command;
}

// Dead. The process that adopts orphans may be slow to reap it, so a zombie also counts.
bool has_ended(pid_t pid) {
  const auto status = read_file("/proc/" + std::to_string(pid) + "/status");
  return ::kill(pid, 0) != 0 || (status && contains(*status, "State:\tZ"));
}

TEST(Subprocess, TellsStatusAndOutput) {
  const Result<Exit> exit = run(shell("echo out; echo err >&2; exit 7"));
  ASSERT_TRUE(exit);
  EXPECT_EQ(exit->kind, Exit::Kind::kExited);
  EXPECT_EQ(exit->code, 7);
  EXPECT_FALSE(exit->ok());
  EXPECT_EQ(exit->output, "out\nerr\n");
  EXPECT_TRUE(contains(exit->describe({}), "status 7"));
  EXPECT_TRUE(run(shell("true"))->ok());
}

TEST(Subprocess, AMissingProgramIsAnErrorThatNamesIt) {
  TempDir dir;
  const std::string plain = join(dir.path(), "plain");
  ASSERT_TRUE(write_file(plain, "not executable"));
  for (const std::string& name :
       {std::string("no-such-program"), std::string("/no/such/program"), plain}) {
    Command command;
    command.argv = {name};
    const Result<Exit> exit = run(command);
    ASSERT_FALSE(exit) << name;
    EXPECT_EQ(exit.error().kind, ErrorKind::kEnvironment);
    EXPECT_TRUE(contains(exit.error().message, name)) << exit.error().message;
  }
}

TEST(Subprocess, PassesOnOnlyTheVariablesThatAreNamed) {
  ::setenv("KP_TEST_ONE", "1", 1);
  ::setenv("KP_TEST_TWO", "2", 1);
  Command command = shell("echo [$KP_TEST_ONE] [$KP_TEST_TWO] [$KP_TEST_OWN]");
  EXPECT_EQ(run(command)->output, "[1] [2] []\n");
  command.keep = {"KP_TEST_TWO"};
  command.env = {"KP_TEST_OWN=3"};
  EXPECT_EQ(run(command)->output, "[] [2] [3]\n");
  command.keep = std::vector<std::string>();
  command.argv = {"/usr/bin/env"};
  EXPECT_EQ(run(command)->output, "KP_TEST_OWN=3\n");
  ::unsetenv("KP_TEST_ONE");
  ::unsetenv("KP_TEST_TWO");
}

// The descriptors given to a child must not overwrite those that its start still needs, whichever
// descriptors this process has free.
TEST(Subprocess, StartsWhereTheFirstDescriptorsAreFree) {
  TempDir dir;
  Command command = shell("echo hello");
  command.cwd = dir.path();
  command.sandbox = compiler_sandbox(dir.path(), {}, 20);
  for (const bool with_channel : {false, true}) {
    std::vector<std::pair<int, Fd>> kept;
    for (int fd = 3; fd < 10; ++fd) {
      kept.emplace_back(fd, above_standard(Fd(::dup(fd))));
      ::close(fd);
    }
    Result<Exit> exit = Exit{};
    if (with_channel) {
      Result<Child> child = Child::start(command);
      if (child) {
        exit = child->wait(20);
      } else {
        exit = tl::unexpected<Error>(child.error());
      }
    } else {
      exit = run(command);
    }
    for (const auto& [fd, copy] : kept) {
      if (copy.valid()) ::dup2(copy.get(), fd);
    }
    ASSERT_TRUE(exit) << exit.error().text();
    EXPECT_EQ(exit->output, "hello\n");
  }
}

TEST(Subprocess, ASignalIsNamed) {
  const Result<Exit> exit = run(shell("kill -SEGV $$"));
  ASSERT_TRUE(exit);
  EXPECT_EQ(exit->kind, Exit::Kind::kSignalled);
  EXPECT_EQ(exit->code, SIGSEGV);
  EXPECT_TRUE(contains(exit->describe({}), "Segmentation fault"));
}

// Kills from outside are distinguished from exits and from our own kills.
TEST(Subprocess, KnowsWhoSentTheSignal) {
  for (const bool sandboxed : {false, true}) {
    Command command = shell("exec sleep 60");
    const TempDir folder;
    if (sandboxed) command.sandbox = compiler_sandbox(folder.path(), {}, 20);
    for (const int signal : {SIGKILL, SIGTERM}) {
      auto child = Child::start(command);
      ASSERT_TRUE(child) << child.error().text();
      // Under a warden, which ignores SIGTERM from others.
      if (sandboxed) {
        ASSERT_TRUE(eventually([&] { return !descendants(child->pid()).empty(); }));
        ::kill(descendants(child->pid()).front(), signal);
      } else {
        ::kill(child->pid(), signal);
      }
      const Exit exit = child->wait(30);
      EXPECT_EQ(exit.code, signal);
      EXPECT_TRUE(exit.from_outside()) << exit.describe({});
    }
    auto ours = Child::start(command);
    ASSERT_TRUE(ours);
    EXPECT_FALSE(ours->finish().from_outside()) << "it ran when we ended it";
    auto killed = Child::start(command);
    ASSERT_TRUE(killed);
    killed->kill();
    EXPECT_FALSE(killed->finish().from_outside());
    auto late = Child::start(command);
    ASSERT_TRUE(late);
    EXPECT_FALSE(late->wait(0.05).from_outside());
  }
  EXPECT_FALSE(run(shell("kill -SEGV $$"))->from_outside());
  EXPECT_FALSE(run(shell("exit 137"))->from_outside());
}

TEST(Subprocess, EndsWhatRunsTooLong) {
  Command command = shell("trap '' TERM INT; sleep 600");
  command.limits.wall_seconds = 0.3;
  const Result<Exit> exit = run(command);
  ASSERT_TRUE(exit);
  EXPECT_EQ(exit->kind, Exit::Kind::kTimedOut);
  EXPECT_TRUE(contains(exit->describe(command.limits), "0.3 s"));
}

TEST(Subprocess, EndsWhatFloodsAndKeepsTheBeginning) {
  Command command = shell("while :; do echo 0123456789abcdef; done");
  command.limits.output_kept = 1000;
  command.limits.output_killed = 1 << 20;
  const Result<Exit> exit = run(command);
  ASSERT_TRUE(exit);
  EXPECT_EQ(exit->kind, Exit::Kind::kFlooded);
  EXPECT_LE(exit->output.size(), 1000u);
  EXPECT_EQ(exit->output.substr(0, 17), "0123456789abcdef\n");
}

TEST(Subprocess, EndsWhatGrowsTooLarge) {
  // A shell can double a string without other programs.
  Command command = shell("x=0123456789abcdef; while :; do x=$x$x; done");
  command.limits.memory_bytes = 64 << 20;
  const Result<Exit> exit = run(command);
  ASSERT_TRUE(exit);
  EXPECT_EQ(exit->kind, Exit::Kind::kOutOfMemory) << exit->describe(command.limits);
  EXPECT_TRUE(contains(exit->describe(command.limits), "memory"));
}

TEST(Subprocess, WhatAChildLeavesBehindIsEndedToo) {
  TempDir dir;
  const std::string file = join(dir.path(), "pid");
  const Result<Exit> exit = run(shell("sleep 60 & echo $! > " + file));
  ASSERT_TRUE(exit && exit->ok());
  const pid_t left = static_cast<pid_t>(std::stol(*read_file(file)));
  EXPECT_TRUE(eventually([&] { return has_ended(left); })) << "the grandchild still runs";
}

TEST(Subprocess, EnvironmentFolderAndInput) {
  TempDir dir;
  ::setenv("KP_TEST_GONE", "1", 1);
  Command command = shell("pwd; echo $KP_TEST_SET; echo [$KP_TEST_GONE]; wc -c");
  command.cwd = dir.path();
  command.env = {"KP_TEST_SET=yes"};
  command.unset = {"KP_TEST_GONE"};
  const Result<Exit> exit = run(command);
  ASSERT_TRUE(exit && exit->ok());
  const std::vector<std::string> got = lines(exit->output);
  ASSERT_EQ(got.size(), 4u) << exit->output;
  EXPECT_EQ(got[0], dir.path());
  EXPECT_EQ(got[1], "yes");
  EXPECT_EQ(got[2], "[]");
  EXPECT_EQ(std::string(trim(got[3])), "0");  // no standard input
  command.cwd = "/no/such/folder";
  EXPECT_FALSE(run(command));
}

TEST(Subprocess, OutputIsMadePrintable) {
  const Result<Exit> exit = run(shell("printf 'a\\033[1mb\\377c'"));
  ASSERT_TRUE(exit);
  EXPECT_EQ(exit->output, "a?[1mb?c");
}

TEST(Subprocess, CountsTimeAndMemory) {
  const Result<Exit> exit = run(shell("i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done"));
  ASSERT_TRUE(exit && exit->ok());
  EXPECT_GT(exit->cpu_seconds, 0.005);
  EXPECT_GE(exit->wall_seconds + 0.05, exit->cpu_seconds);
  EXPECT_GT(exit->max_rss_bytes, 100'000);
}

// A child that answers one frame on descriptor 3: the length, then the same bytes.
TEST(Child, TalksOverItsChannel) {
  Result<Child> child = Child::start(shell("head -c 9 <&3 >&3; exit 3"));
  ASSERT_TRUE(child) << child.error().text();
  ASSERT_TRUE(child->send("hello"));
  const std::optional<Frame> frame = child->receive(10);
  ASSERT_TRUE(frame);
  EXPECT_EQ(frame->bytes, "hello");
  EXPECT_FALSE(child->receive(10));  // it has exited
  EXPECT_EQ(child->finish().code, 3);
  EXPECT_FALSE(child->running());
  EXPECT_FALSE(child->send("too late"));
}

TEST(Child, SilenceIsEnded) {
  Result<Child> child =
      Child::start(shell("echo waiting; printf '\\005\\000\\000\\000ready' >&3; sleep 600"));
  ASSERT_TRUE(child);
  ASSERT_TRUE(child->receive(120));
  EXPECT_FALSE(child->receive(0.3));
  const Exit& exit = child->finish();
  EXPECT_EQ(exit.kind, Exit::Kind::kTimedOut);
  EXPECT_EQ(exit.output, "waiting\n");
}

TEST(Child, PatienceIsAskedBeforeItIsEnded) {
  // Answers only our second message, which comes after its time is up.
  Result<Child> child =
      Child::start(shell("head -c 9 <&3 >/dev/null; head -c 8 <&3 >&3; sleep 60"));
  ASSERT_TRUE(child);
  ASSERT_TRUE(child->send("hello"));
  int asked = 0;
  const std::optional<Frame> frame = child->receive(0.05, [&] {
    ++asked;
    EXPECT_TRUE(child->send("four"));
    return 30.0;
  });
  ASSERT_TRUE(frame);
  EXPECT_EQ(frame->bytes, "four");
  EXPECT_EQ(asked, 1);
  EXPECT_FALSE(child->receive(0.05, [&] { return asked++ < 3 ? 0.05 : 0; }));
  EXPECT_EQ(asked, 4);
  EXPECT_EQ(child->finish().kind, Exit::Kind::kTimedOut);
}

TEST(Child, ADestroyedChildIsGone) {
  pid_t pid = 0;
  {
    Result<Child> child = Child::start(shell("sleep 60"));
    ASSERT_TRUE(child);
    pid = child->pid();
    EXPECT_EQ(::kill(pid, 0), 0);
  }
  EXPECT_NE(::kill(pid, 0), 0);
}

// In a separate process, since it stops waiting for children.
TEST(Child, OneLeftBehindIsEndedAndNotWaitedFor) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t leaver = ::fork();
  ASSERT_GE(leaver, 0);
  if (leaver == 0) {
    pid_t left = 0;
    {
      Result<Child> child = Child::start(shell("sleep 60"));
      leave_children_behind();
      if (child) left = child->pid();
    }
    ::_exit(::write(ends[1], &left, sizeof left) == sizeof left ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(leaver, &status, 0), leaver);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  pid_t left = 0;
  ASSERT_EQ(::read(ends[0], &left, sizeof left), static_cast<ssize_t>(sizeof left));
  ::close(ends[0]);
  ::close(ends[1]);
  ASSERT_GT(left, 0);
  EXPECT_TRUE(eventually([&] { return has_ended(left); }));
}

TEST(Child, MovesWithoutLosingItsProcess) {
  Result<Child> child = Child::start(shell("exit 5"));
  ASSERT_TRUE(child);
  Child moved = std::move(*child);
  EXPECT_FALSE(child->running());
  EXPECT_EQ(moved.wait(10).code, 5);
  EXPECT_EQ(moved.wait(10).code, 5);  // idempotent
}

TEST(Subprocess, AFlagFromAnotherThreadEndsWhatIsWaitedFor) {
  const TempDir dir;
  const std::string started = join(dir.path(), "started");
  std::atomic<bool> flag{false};
  std::thread other([&] {
    eventually([&] { return exists(started); });
    flag = true;
  });
  {
    const CancelScope scope(&flag);
    const Result<Exit> exit = run(shell("touch " + started + "; sleep 600"));
    other.join();
    ASSERT_TRUE(exit);
    EXPECT_EQ(exit->kind, Exit::Kind::kTimedOut);
    const Result<Exit> next = run(shell("sleep 600"));  // the flag stays set
    ASSERT_TRUE(next);
    EXPECT_EQ(next->kind, Exit::Kind::kTimedOut);
  }
  EXPECT_TRUE(run(shell("true"))->ok());  // outside the scope it has no effect
}

TEST(Subprocess, AFlagEndsAChildThatOwesAMessage) {
  std::atomic<bool> flag{false};
  const CancelScope scope(&flag);
  auto child = Child::start(shell("sleep 600"));
  ASSERT_TRUE(child);
  std::thread other([&] { flag = true; });
  const double from = real_clock().now_s();
  EXPECT_FALSE(child->receive(600));
  EXPECT_LT(real_clock().now_s() - from, 60);
  EXPECT_EQ(child->finish().kind, Exit::Kind::kTimedOut);
  other.join();
}

TEST(Subprocess, MemoryIsWatchedWhileNobodyWaits) {
  Command command = shell("head -c 400m /dev/zero | tail -n 1 | sleep 1000");
  command.limits.memory_bytes = 100 << 20;
  command.limits.at_rest = true;
  command.sandbox.emplace().read_all = true;
  Result<Child> started = Child::start(command);
  ASSERT_TRUE(started) << started.error().text();
  Child child = std::move(*started);
  const pid_t pid = child.pid();
  EXPECT_TRUE(eventually([&] {
    const std::vector<ProcessInfo> all = all_processes();
    return std::none_of(all.begin(), all.end(),
                        [&](const ProcessInfo& each) { return each.pid == pid && !each.zombie; });
  }));
  const Exit& exit = child.finish();
  EXPECT_EQ(exit.kind, Exit::Kind::kOutOfMemory) << exit.describe(command.limits);
  EXPECT_FALSE(exit.from_outside());
}

}  // namespace
}  // namespace kernelpro
