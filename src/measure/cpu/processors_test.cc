// SPDX-License-Identifier: Apache-2.0
#include "measure/cpu/processors.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

namespace kernelpro {
namespace {

// Waits to be killed.
class Sleeper {
 public:
  Sleeper() : id_(::fork()) {
    if (id_ != 0) return;
    for (;;) ::pause();
  }
  ~Sleeper() {
    ::kill(id_, SIGKILL);
    ::waitpid(id_, nullptr, 0);
  }
  Sleeper(const Sleeper&) = delete;
  Sleeper& operator=(const Sleeper&) = delete;
  pid_t id() const { return id_; }

 private:
  pid_t id_;
};

cpu_set_t allowed(pid_t thread) {
  cpu_set_t set;
  CPU_ZERO(&set);
  EXPECT_EQ(::sched_getaffinity(thread, sizeof set, &set), 0);
  return set;
}

int only(const cpu_set_t& set) {
  EXPECT_EQ(CPU_COUNT(&set), 1);
  int cpu = 0;
  while (cpu < CPU_SETSIZE && !CPU_ISSET(cpu, &set)) ++cpu;
  return cpu;
}

class ProcessorsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (CPU_COUNT(&before_) < 2) GTEST_SKIP() << "needs two processors";
  }
  const cpu_set_t before_ = allowed(0);
};

TEST_F(ProcessorsTest, BindsInTurnAndFrees) {
  const Sleeper sleeper;
  const auto first = bind_thread(sleeper.id(), 0);
  ASSERT_TRUE(first);
  const int at = only(allowed(sleeper.id()));
  free_thread(*first);
  EXPECT_TRUE(CPU_EQUAL(&before_, &first->allowed));
  const auto second = bind_thread(sleeper.id(), 1);
  ASSERT_TRUE(second);
  EXPECT_NE(only(allowed(sleeper.id())), at);
  free_thread(*second);
  const cpu_set_t after = allowed(sleeper.id());
  EXPECT_TRUE(CPU_EQUAL(&after, &before_));
}

TEST_F(ProcessorsTest, AThreadIsHeldWhereItRan) {
  const auto self = bind_thread(0, 1);
  ASSERT_TRUE(self);
  const int here = only(allowed(0));
  const Sleeper sleeper;  // began beside us
  free_thread(*self);
  free_thread({sleeper.id(), before_});
  const auto held = hold_thread(sleeper.id());
  ASSERT_TRUE(held);
  EXPECT_EQ(only(allowed(sleeper.id())), here);
}

TEST_F(ProcessorsTest, TheOneThatWaitsRunsBesideTheOtherAndIsFreeAfterwards) {
  const Sleeper sleeper;
  for (std::uint64_t n : {0u, 1u}) {
    const auto bound = bind_thread(sleeper.id(), n);
    ASSERT_TRUE(bound);
    ::kill(sleeper.id(), SIGSTOP);
    ASSERT_EQ(::waitpid(sleeper.id(), nullptr, WUNTRACED), sleeper.id());  // it has run there
    {
      const RunBeside beside(sleeper.id());
      EXPECT_EQ(::sched_getcpu(), only(allowed(sleeper.id())));
    }
    const cpu_set_t after = allowed(0);
    EXPECT_TRUE(CPU_EQUAL(&after, &before_));
    ::kill(sleeper.id(), SIGCONT);
    free_thread(*bound);
  }
}

TEST_F(ProcessorsTest, AThreadThatHasEndedIsLeftAlone) {
  pid_t ended = 0;
  {
    const Sleeper sleeper;
    ended = sleeper.id();
  }
  EXPECT_FALSE(bind_thread(ended, 0));
  EXPECT_FALSE(hold_thread(ended));
  const RunBeside beside(ended);
  const cpu_set_t after = allowed(0);
  EXPECT_TRUE(CPU_EQUAL(&after, &before_));
}

}  // namespace
}  // namespace kernelpro
