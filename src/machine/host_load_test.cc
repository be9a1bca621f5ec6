// SPDX-License-Identifier: Apache-2.0
#include "machine/host_load.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

namespace kernelpro {
namespace {

constexpr double kTick = 0.01;

LoadReading reading(double wall_s, std::map<pid_t, double> process_s, double busy_s,
                    double stolen_s = 0) {
  return {wall_s, std::move(process_s), busy_s, stolen_s};
}

TEST(HostLoad, OwnTimeIsNotForeign) {
  const HostLoad load = load_between(reading(0, {{1, 5}, {2, 0}}, 10),
                                     reading(1, {{1, 7}, {2, 0}}, 12), {1}, 2, 4 * kTick);
  EXPECT_EQ(load.foreign, 0);
  EXPECT_EQ(load.wall_s, 1);
}

TEST(HostLoad, OthersCountWhetherOldOrNew) {
  const HostLoad load = load_between(reading(0, {{1, 5}, {2, 3}}, 0),
                                     reading(1, {{1, 6}, {2, 3.5}, {3, 0.3}}, 1.8), {1}, 2, kTick);
  EXPECT_NEAR(load.foreign, 0.8 / 2, 1e-12);
}

TEST(HostLoad, TicksShowWhatProcessesDoNot) {
  // Processes of other containers, and those that ended in between.
  const HostLoad hidden =
      load_between(reading(0, {{1, 0}}, 0), reading(1, {{1, 1}}, 2), {1}, 2, 4 * kTick);
  EXPECT_NEAR(hidden.foreign, 0.96 / 2, 1e-12);
  // Over a short interval ticks alone are not significant.
  const HostLoad brief =
      load_between(reading(0, {{1, 0}}, 0), reading(0.005, {{1, 0.005}}, 0.02), {1}, 2, 4 * kTick);
  EXPECT_EQ(brief.foreign, 0);
}

TEST(HostLoad, StolenTimeIsForeign) {
  const HostLoad load =
      load_between(reading(0, {{1, 0}}, 0), reading(1, {{1, 1}}, 1.5, 0.5), {1}, 2, kTick);
  EXPECT_NEAR(load.foreign, 0.25, 0.01);
}

TEST(HostLoad, AProcessNumberThatWasUsedAgainStartsFromZero) {
  const HostLoad load =
      load_between(reading(0, {{9, 50}}, 0), reading(1, {{9, 0.5}}, 0.5), {}, 2, kTick);
  EXPECT_NEAR(load.foreign, 0.25, 1e-9);
}

TEST(HostLoad, ABusyLoopBesideUsIsSeen) {
  LoadMeter meter;
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::alarm(60);  // ends it if the test does not
    for (;;) asm volatile("");
  }
  // Wait until the child has run, however busy the machine is.
  clockid_t clock{};
  ASSERT_EQ(::clock_getcpuclockid(child, &clock), 0);
  timespec used{};
  const double end = real_clock().now_s() + 30;
  do {
    ::clock_gettime(clock, &used);
  } while (used.tv_sec == 0 && used.tv_nsec < 50'000'000 && real_clock().now_s() < end);
  // Shares vary with other load; the CPU time of others only grows.
  const HostLoad without = meter.since_begin({child});
  const HostLoad with = meter.since_begin();
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_GT(with.foreign, 0);
  EXPECT_GT(with.foreign * with.wall_s, without.foreign * without.wall_s);
}

TEST(HostLoad, WorkThatCannotRunOnOurProcessorsIsNotCounted) {
  cpu_set_t all;
  ASSERT_EQ(::sched_getaffinity(0, sizeof all, &all), 0);
  if (CPU_COUNT(&all) < 2) GTEST_SKIP() << "needs two processors";
  int first = 0;
  while (!CPU_ISSET(first, &all)) ++first;
  cpu_set_t one, rest = all;
  CPU_ZERO(&one);
  CPU_SET(first, &one);
  CPU_CLR(first, &rest);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::alarm(60);  // ends it if the test does not
    for (;;) ::pause();
  }
  ASSERT_EQ(::sched_setaffinity(child, sizeof rest, &rest), 0);
  EXPECT_EQ(process_times(all).count(child), 1u);
  EXPECT_EQ(process_times(rest).count(child), 1u);
  EXPECT_EQ(process_times(one).count(child), 0u);
  EXPECT_EQ(process_times(one).count(::getpid()), 1u);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

}  // namespace
}  // namespace kernelpro
