// SPDX-License-Identifier: Apache-2.0
#include "base/process/processes.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

namespace kernelpro {
namespace {

TEST(Processes, KnowsItself) {
  const std::vector<ProcessInfo> all = all_processes();
  const auto self = std::find_if(all.begin(), all.end(),
                                 [](const ProcessInfo& p) { return p.pid == ::getpid(); });
  ASSERT_NE(self, all.end());
  EXPECT_EQ(self->parent, ::getppid());
  EXPECT_EQ(self->group, ::getpgrp());
  EXPECT_GT(self->resident_bytes, 100'000);
  EXPECT_GE(self->threads, 1);
  EXPECT_FALSE(self->zombie);
}

TEST(Processes, KnowsWhereAThreadRan) {
  const auto probe = [] {
    const int here = ::sched_getcpu();
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(here, &one);
    if (::sched_setaffinity(0, sizeof one, &one) != 0) ::_exit(2);
    ::_exit(last_processor(::getpid()) == ::sched_getcpu() ? 0 : 1);
  };
  const pid_t child = ::fork();
  if (child == 0) probe();
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(last_processor(child), -1);  // gone
}

TEST(Processes, FindsGrandchildren) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const pid_t grandchild = ::fork();
    if (grandchild == 0) {
      ::setsid();
      for (;;) ::pause();
    }
    [[maybe_unused]] const ssize_t n = ::write(ends[1], &grandchild, sizeof grandchild);
    for (;;) ::pause();
  }
  pid_t grandchild = 0;
  ASSERT_EQ(::read(ends[0], &grandchild, sizeof grandchild),
            static_cast<ssize_t>(sizeof grandchild));
  const std::vector<pid_t> found = descendants(::getpid());
  EXPECT_EQ(std::count(found.begin(), found.end(), child), 1);
  EXPECT_EQ(std::count(found.begin(), found.end(), grandchild), 1);
  EXPECT_EQ(descendants(child), std::vector<pid_t>{grandchild});
  ::kill(grandchild, SIGKILL);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_TRUE(descendants(child).empty());
}

TEST(Processes, ProcessorTimeIsCountedAndWaitingIsNot) {
  const double before = processor_seconds({::getpid()});
  volatile double sum = 0;
  while (processor_seconds({::getpid()}) < before + 0.1) sum = sum + 1;
  EXPECT_EQ(processor_seconds({}), 0);
}

}  // namespace
}  // namespace kernelpro
