// SPDX-License-Identifier: Apache-2.0
#include "base/process/sandbox.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <thread>

#include "base/clock.h"
#include "base/files.h"
#include "base/process/processes.h"
#include "base/process/subprocess.h"
#include "base/testing.h"
#include "base/text.h"

namespace kernelpro {
namespace {

class SandboxTest : public ::testing::Test {
 protected:
  Command shell(const std::string& script) const {
    Command command;
    command.argv = {"/bin/sh", "-c", script};
    command.cwd = inside_.path();
    command.sandbox = compiler_sandbox(inside_.path(), {}, 20);
    return command;
  }
  Exit must_run(const Command& command) const {
    const Result<Exit> exit = run(command);
    EXPECT_TRUE(exit) << exit.error().text();
    return exit ? *exit : Exit();
  }
  // The result of `call` in a process inside the sandbox.
  template <class Call>
  int inside(const Sandbox& sandbox, Call call) const {
    const Result<PreparedSandbox> prepared = PreparedSandbox::make(sandbox);
    EXPECT_TRUE(prepared) << prepared.error().text();
    const pid_t child = ::fork();
    if (child == 0) {
      if (prepared->enter() != 0) ::_exit(250);
      ::_exit(call());
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }
  static bool alive(pid_t pid) {
    for (const ProcessInfo& info : all_processes()) {
      if (info.pid == pid) return !info.zombie;
    }
    return false;
  }
  static bool gone_soon(pid_t pid) {
    return eventually([&] { return !alive(pid); });
  }
  pid_t number_in(const std::string& name) const {
    const std::string path = join(inside_.path(), name);
    pid_t number = 0;
    eventually([&] {
      const Result<std::string> text = read_file(path);
      if (text && contains(*text, "\n")) number = static_cast<pid_t>(std::stol(*text));
      return number > 0;
    });
    return number;
  }

  TempDir inside_, outside_;
};

TEST_F(SandboxTest, ReadsAndWritesOnlyWhereItMay) {
  if (landlock_version() == 0 && ::geteuid() == 0) GTEST_SKIP() << "no Landlock here";
  const std::string secret = join(outside_.path(), "secret");
  ASSERT_TRUE(write_file(secret, "hidden\n"));
  ASSERT_EQ(::chmod(outside_.path().c_str(), 0700), 0);
  const Exit exit = must_run(shell("cat " + secret + "; echo x > " + outside_.path() + "/new; ls " +
                                   outside_.path() + "; rm -f " + secret +
                                   "; echo mine > own; cat own; mkdir d; mv own d; cat d/own"));
  EXPECT_FALSE(contains(exit.output, "hidden")) << exit.output;
  EXPECT_TRUE(contains(exit.output, "mine\nmine")) << exit.output;
  EXPECT_EQ(list_dir(outside_.path()), std::vector<std::string>{"secret"});
  // A link that points outside does not help.
  const Exit linked = must_run(shell("ln -s " + secret + " link && cat link"));
  EXPECT_FALSE(contains(linked.output, "hidden")) << linked.output;
}

TEST_F(SandboxTest, RootsMayBeAdded) {
  const std::string file = join(outside_.path(), "shown");
  ASSERT_TRUE(write_file(file, "shown\n"));
  ASSERT_EQ(::chmod(outside_.path().c_str(), 0755), 0);
  Command command = shell("cat " + file + "; echo more >> " + file);
  command.sandbox->read.push_back(outside_.path());
  command.sandbox->read.push_back("/no/such/root");
  EXPECT_TRUE(contains(must_run(command).output, "shown\n"));
  EXPECT_EQ(*read_file(file), "shown\n");
  command.sandbox->read_all = true;
  command.sandbox->read.clear();
  EXPECT_TRUE(contains(must_run(command).output, "shown\n"));
}

TEST_F(SandboxTest, NoSocketsButPairs) {
  Sandbox sandbox;
  sandbox.read_all = true;
  for (const int family : {AF_INET, AF_INET6, AF_NETLINK, AF_PACKET}) {
    EXPECT_EQ(
        inside(sandbox, [&] { return ::socket(family, SOCK_DGRAM, 0) < 0 && errno == EACCES; }), 1)
        << family;
  }
  EXPECT_EQ(inside(sandbox,
                   [] {
                     int pair[2];
                     return ::socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0 ? 1 : 0;
                   }),
            1);
  EXPECT_EQ(inside(sandbox,
                   [] {
                     sockaddr_un address{};
                     address.sun_family = AF_UNIX;
                     const int fd = ::socket(AF_UNIX, SOCK_STREAM, 0);
                     const bool refused = ::connect(fd, reinterpret_cast<sockaddr*>(&address),
                                                    sizeof address) != 0 &&
                                          errno == ENOENT;
                     return fd >= 0 && refused ? 1 : 0;
                   }),
            1);
  // Datagrams need no connection.
  EXPECT_EQ(inside(sandbox,
                   [] {
                     int pair[2];
                     const bool single = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0) >= 0;
                     return !single && ::socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) != 0 ? 1 : 0;
                   }),
            1);
  sandbox.network = true;
  EXPECT_EQ(inside(sandbox, [] { return ::socket(AF_INET, SOCK_DGRAM, 0) >= 0 ? 1 : 0; }), 1);
}

TEST_F(SandboxTest, DescriptorsSendNoSignals) {
  Sandbox sandbox;
  sandbox.read_all = true;
  const pid_t parent = ::getpid();
  EXPECT_EQ(inside(sandbox,
                   [&] {
                     int pair[2];
                     if (::socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0) return 0;
                     int owner = parent;
                     const bool owned = ::fcntl(pair[0], F_SETOWN, parent) == 0 ||
                                        ::ioctl(pair[0], FIOSETOWN, &owner) == 0 ||
                                        ::ioctl(pair[0], SIOCSPGRP, &owner) == 0;
                     return !owned && ::fcntl(pair[0], F_SETFL, O_NONBLOCK) == 0 ? 1 : 0;
                   }),
            1);
}

TEST_F(SandboxTest, PythonSeesNothingOfOthers) {
  if (landlock_version() == 0) GTEST_SKIP() << "no Landlock here";
  const Sandbox sandbox = candidate_python_sandbox(inside_.path(), {});
  const auto reads = [&](const std::string& path) {
    return inside(sandbox, [&] {
      char byte = 0;
      const int file = ::open(path.c_str(), O_RDONLY);
      return file >= 0 && ::read(file, &byte, 1) == 1 ? 1 : 0;
    });
  };
  for (const char* page : {"/proc/self/status", "/proc/self/maps", "/proc/cpuinfo", "/proc/meminfo",
                           "/sys/devices/system/cpu/possible"}) {
    EXPECT_EQ(reads(page), exists(page) ? 1 : 0) << page;
  }
  for (const char* page : {"/proc/self/mountinfo", "/proc/self/net/unix", "/proc/net/tcp",
                           "/proc/sys/kernel/hostname", "/sys/class/dmi/id/product_name"}) {
    EXPECT_EQ(reads(page), 0) << page;
  }
  EXPECT_EQ(reads("/proc/" + std::to_string(::getpid()) + "/cmdline"), 0);
}

TEST_F(SandboxTest, OtherProcessesAreOutOfReach) {
  Sandbox sandbox;
  sandbox.read_all = true;
  const pid_t parent = ::getpid();
  EXPECT_EQ(inside(sandbox, [&] { return ::kill(parent, 0) != 0 && errno == EPERM; }), 1);
  EXPECT_EQ(inside(sandbox, [&] { return ::ptrace(PTRACE_ATTACH, parent, 0, 0) != 0 ? 1 : 0; }), 1);
  const std::string memory = "/proc/" + std::to_string(parent) + "/mem";
  EXPECT_EQ(inside(sandbox, [&] { return ::open(memory.c_str(), O_RDWR) < 0 ? 1 : 0; }), 1);
  if (landlock_version() > 0) {
    EXPECT_EQ(inside(sandbox, [&] { return ::open(memory.c_str(), O_RDONLY) < 0 ? 1 : 0; }), 1);
  }
  EXPECT_EQ(inside(sandbox, [] { return ::shmget(IPC_PRIVATE, 4096, 0600) < 0 ? 1 : 0; }), 1);
  EXPECT_EQ(inside(sandbox, [] { return ::unshare(CLONE_NEWUSER) != 0 ? 1 : 0; }), 1);
  EXPECT_EQ(inside(sandbox, [] { return ::syscall(425, 4, nullptr) < 0 && errno == ENOSYS; }), 1);
}

TEST_F(SandboxTest, LimitsOnFilesAndTime) {
  Command command = shell("exec head -c 20000000 /usr/bin/* > large");
  command.sandbox->file_bytes = 1 << 20;
  Exit exit = must_run(command);
  EXPECT_EQ(exit.kind, Exit::Kind::kSignalled) << exit.output;
  EXPECT_EQ(exit.code, SIGXFSZ);
  EXPECT_TRUE(contains(exit.describe({}), "limit on sizes")) << exit.describe({});
  EXPECT_LE(read_file(join(inside_.path(), "large"))->size(), 1u << 20);
  command = shell("while :; do :; done");
  command.sandbox->cpu_seconds = 0.5;
  exit = must_run(command);
  EXPECT_EQ(exit.kind, Exit::Kind::kSignalled);
  EXPECT_LT(exit.cpu_seconds, 10);
}

TEST_F(SandboxTest, ProcessesAreCounted) {
  Command command = shell("for i in 1 2 3 4 5 6 7 8 9 10 11 12; do sleep 600 & done; wait");
  command.sandbox->max_processes = 8;
  const Exit exit = must_run(command);
  EXPECT_EQ(exit.kind, Exit::Kind::kTooManyProcesses) << exit.describe({});
  EXPECT_TRUE(contains(exit.describe({}), "too many processes"));
}

TEST_F(SandboxTest, MemoryIsThatOfAllProcessesTogether) {
  Command command = shell(
      "for i in 1 2 3 4; do (head -c 30000000 /dev/zero; sleep 600) | tail -c 30000000 > /dev/null "
      "& "
      "done; wait");
  command.sandbox->read.push_back("/dev/zero");
  command.limits.memory_bytes = 90 << 20;
  command.limits.wall_seconds = 120;
  const Exit exit = must_run(command);
  EXPECT_EQ(exit.kind, Exit::Kind::kOutOfMemory) << exit.describe(command.limits);
}

TEST_F(SandboxTest, SecretsStayOutside) {
  ::setenv("KP_TEST_API_KEY", "12345", 1);
  ::setenv("KP_TEST_PLAIN", "seen", 1);
  Command command = shell("echo [$KP_TEST_API_KEY] [$KP_TEST_PLAIN]");
  EXPECT_EQ(must_run(command).output, "[] [seen]\n");
  command.sandbox->secrets = true;
  EXPECT_EQ(must_run(command).output, "[12345] [seen]\n");
  ::unsetenv("KP_TEST_API_KEY");
  ::unsetenv("KP_TEST_PLAIN");
}

TEST_F(SandboxTest, TheWardenTellsHowItEnded) {
  EXPECT_EQ(must_run(shell("exit 7")).code, 7);
  const Exit killed = must_run(shell("kill -SEGV $$"));
  EXPECT_EQ(killed.kind, Exit::Kind::kSignalled);
  EXPECT_EQ(killed.code, SIGSEGV);
  const Exit busy = must_run(shell("i=0; while [ $i -lt 50000 ]; do i=$((i+1)); done"));
  EXPECT_GT(busy.cpu_seconds, 0.002);
  EXPECT_GT(busy.max_rss_bytes, 100'000);
  EXPECT_LT(busy.max_rss_bytes, 50 << 20);
  Command command = shell("echo unreachable");
  command.argv = {"/dev/null"};
  EXPECT_FALSE(run(command));
  command = shell("sleep 60");
  command.limits.wall_seconds = 0.3;
  const Exit late = must_run(command);
  EXPECT_EQ(late.kind, Exit::Kind::kTimedOut);
}

// Forks, starts a new session, forks again: its parents are gone and its group is another.
const char* const kDetached =
    "setsid sh -c '(sh -c \"echo \\$\\$ > pid.new; mv pid.new pid; exec sleep 60\" &) ; exit 0'; ";

TEST_F(SandboxTest, WhatDetachesItselfEndsWithTheChild) {
  const Exit exit = must_run(shell(std::string(kDetached) + "while [ ! -f pid ]; do :; done"));
  EXPECT_TRUE(exit.ok()) << exit.output;
  const pid_t left = number_in("pid");
  ASSERT_GT(left, 1);
  EXPECT_FALSE(alive(left));
}

TEST_F(SandboxTest, WhatDetachesItselfEndsWhenTheChildIsEnded) {
  Result<Child> child = Child::start(shell(std::string(kDetached) + "sleep 60"));
  ASSERT_TRUE(child) << child.error().text();
  const pid_t left = number_in("pid");
  ASSERT_GT(left, 1);
  EXPECT_TRUE(alive(left));
  child->finish();
  EXPECT_FALSE(alive(left));
}

TEST_F(SandboxTest, EverythingEndsWhenWeAreKilled) {
  const pid_t supervisor = ::fork();
  if (supervisor == 0) {
    Result<Child> child = Child::start(shell(std::string(kDetached) + "sleep 60"));
    for (;;) ::pause();
  }
  const pid_t left = number_in("pid");
  ASSERT_GT(left, 1);
  const std::vector<pid_t> tree = descendants(supervisor);
  EXPECT_GE(tree.size(), 3u);  // the warden, the shell, its sleep, the detached one
  ::kill(supervisor, SIGKILL);
  ::waitpid(supervisor, nullptr, 0);
  for (const pid_t pid : tree) EXPECT_TRUE(gone_soon(pid)) << pid;
  EXPECT_TRUE(gone_soon(left));
}

TEST_F(SandboxTest, TalksThroughTheWarden) {
  Result<Child> child = Child::start(shell("head -c 9 <&3 >&3; exit 3"));
  ASSERT_TRUE(child) << child.error().text();
  ASSERT_TRUE(child->send("hello"));
  const std::optional<Frame> frame = child->receive(10);
  ASSERT_TRUE(frame);
  EXPECT_EQ(frame->bytes, "hello");
  EXPECT_FALSE(child->receive(10));
  EXPECT_EQ(child->finish().code, 3);
}

// The kernel ends a child with the thread that started it if asked to (PR_SET_PDEATHSIG).
TEST_F(SandboxTest, OutlivesTheThreadThatStartedIt) {
  std::optional<Child> plain, boxed;
  std::string thread;
  std::thread([&] {
    thread = "/proc/self/task/" + std::to_string(::gettid());
    Command command = shell("head -c 9 <&3 >&3; sleep 600");
    boxed = std::move(*Child::start(command));
    command.sandbox.reset();
    plain = std::move(*Child::start(command));
  }).join();
  // The thread's entry goes after such signals were sent; a child with one pending is silent.
  ASSERT_TRUE(eventually([&] { return ::access(thread.c_str(), F_OK) != 0; }));
  for (Child* child : {&*plain, &*boxed}) {
    ASSERT_TRUE(child->send("hello"));
    const std::optional<Frame> answer = child->receive(120);
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->bytes, "hello");
  }
}

TEST(Sandbox, RootsOfPrograms) {
  EXPECT_EQ(program_root("/bin/sh"), "/usr");
  EXPECT_EQ(program_root("/no/such/program"), "");
  TempDir home;
  ASSERT_TRUE(make_dirs(join(home.path(), "bin")));
  const std::string program = join(home.path(), "bin/tool");
  ASSERT_TRUE(write_file(program, "#!/bin/sh\n"));
  ASSERT_EQ(::chmod(program.c_str(), 0755), 0);
  const std::string before = std::getenv("HOME") != nullptr ? std::getenv("HOME") : "/";
  EXPECT_EQ(program_root(program), home.path());
  const std::string link = join(home.path(), "venv/bin/python");
  ASSERT_TRUE(make_dirs(dirname(link)));
  ASSERT_EQ(::symlink("/bin/sh", link.c_str()), 0);
  EXPECT_EQ(program_roots(link), (std::vector<std::string>{"/usr", join(home.path(), "venv")}));
  ::setenv("HOME", home.path().c_str(), 1);
  EXPECT_EQ(program_root(program), join(home.path(), "bin"));  // not the whole home
  ::setenv("HOME", before.c_str(), 1);
}

TEST(Sandbox, SupportSaysWhatFollows) {
  const std::vector<SandboxSupport> all = sandbox_support();
  EXPECT_GE(all.size(), 5u);
  for (const SandboxSupport& s : all) {
    EXPECT_FALSE(s.means.empty()) << s.name;
    EXPECT_NE(s.held, !s.follows.empty()) << s.name;
  }
}

}  // namespace
}  // namespace kernelpro
