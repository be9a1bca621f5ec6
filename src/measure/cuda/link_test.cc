// SPDX-License-Identifier: Apache-2.0
// Whom a refusal blames, by who says it; and processes that are stopped.
#include "measure/cuda/link.h"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>

#include "base/files.h"
#include "measure/cuda/worker.h"

namespace kernelpro {
namespace {

struct CudaLinks : ::testing::Test {
  void SetUp() override {
    if (find_program("python3").empty()) GTEST_SKIP() << "no python3";
    ::setenv("KERNELPRO_WORKER", KERNELPRO_SOURCE_DIR "/src/measure/cuda/testing/fake_worker.py",
             1);
    ::setenv("FAKE_FAILS", "always", 1);
  }
  void TearDown() override {
    for (const char* name : {"KERNELPRO_WORKER", "FAKE_FAILS", "FAKE_RULE"}) ::unsetenv(name);
  }
  // What becomes of a candidate whose process of this role refuses by this rule.
  static Outcome refused(WorkerRole role, const char* rule) {
    ::setenv("FAKE_RULE", rule, 1);
    Result<CudaLink> link = CudaLink::start(role);
    EXPECT_TRUE(link);
    return worker_outcome(link->ask({{"do", "run"}}, 600), "checking", "small");
  }
};

// The native worker runs no host code of a candidate; any other process may be made to lie.
TEST_F(CudaLinks, BelieveOnlyTheNativeWorkerAboutTheMachine) {
  const Outcome credible = refused(WorkerRole::kCudaWorker, "environment");
  EXPECT_TRUE(perhaps_killed(credible)) << "worth another try";
  for (const WorkerRole role : {WorkerRole::kCudaCapture, WorkerRole::kCudaProfiler}) {
    const Outcome doubtful = refused(role, "environment");
    ASSERT_TRUE(std::holds_alternative<Crashed>(doubtful)) << worker_role_name(role);
    EXPECT_EQ(std::get<Crashed>(doubtful).by, Crashed::By::kItself) << worker_role_name(role);
  }
}

TEST_F(CudaLinks, BlameTheCandidateForEverythingElse) {
  const Outcome crashed = refused(WorkerRole::kCudaWorker, "");
  ASSERT_TRUE(std::holds_alternative<Crashed>(crashed));
  EXPECT_EQ(std::get<Crashed>(crashed).by, Crashed::By::kItself);
  EXPECT_EQ(std::get<Crashed>(crashed).reason, "out of memory while checking");
  const Outcome misfit = refused(WorkerRole::kCudaWorker, "plan");
  ASSERT_TRUE(std::holds_alternative<Rejected>(misfit));
  EXPECT_EQ(std::get<Rejected>(misfit).rule, "plan");
}

TEST_F(CudaLinks, AStoppedProcessGoesOnWhenItIsAsked) {
  ::unsetenv("FAKE_FAILS");
  Result<CudaLink> link = CudaLink::start(WorkerRole::kCudaWorker);
  ASSERT_TRUE(link);
  const auto pid = [&] {
    const Answer answer = link->ask({{"do", "hello"}}, 600);
    const auto* reply = std::get_if<Reply>(&answer);
    return reply == nullptr ? 0 : reply->json.value("pid", 0);
  };
  const int first = pid();
  ASSERT_GT(first, 0);
  for (int time = 0; time < 3; ++time) {
    link->stop();
    siginfo_t stopped{};
    ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(first), &stopped, WSTOPPED), 0);
    EXPECT_EQ(pid(), first);
  }
  link->stop();  // ends all the same
}

TEST(CudaLinkLimits, WhoeverOnlyWaitsIsNotWaitedFor) {
  const TempDir place;
  const auto seconds = [&](const char* does, double most_s) {
    Result<std::shared_ptr<PrivateFolder>> folder = PrivateFolder::make(place.path());
    EXPECT_TRUE(folder);
    Command command;
    command.argv = {"/bin/sh", "-c", does, "sh", (*folder)->path()};
    Result<CudaLink> link = CudaLink::start(std::move(command));
    EXPECT_TRUE(link);
    link->own(*folder);
    const Answer answer = link->ask_while_busy({{"do", "capture"}}, most_s, 0.5);
    const auto* lost = std::get_if<Lost>(&answer);
    EXPECT_TRUE(lost != nullptr && lost->timed_out) << does;
    return lost == nullptr ? 0 : lost->seconds;
  };
  EXPECT_LT(seconds("sleep 600", 30), 15);
  EXPECT_LT(seconds("while :; do :; done", 30), 15) << "it compiles nothing";
  EXPECT_GE(seconds("while :; do echo >> \"$1/log\"; done", 3), 2.7);
  // They begin long after the question, and before the first look.
  EXPECT_GE(seconds("i=0; while [ $i -lt 50000 ]; do i=$((i + 1)); done; "
                    "(while :; do :; done) & while :; do :; done",
                    3),
            2.7);
}

TEST(CudaLinkLimits, AnswersTogetherHaveALimit) {
  const auto allowance = std::make_shared<Allowance>();
  allowance->limit_s = 0.2;
  for (int process = 0; process < 2; ++process) {
    Command command;
    command.argv = {"/bin/sh", "-c", "sleep 600"};
    Result<CudaLink> link = CudaLink::start(std::move(command));
    ASSERT_TRUE(link);
    link->limit_by(allowance);
    const Outcome outcome = worker_outcome(link->ask({{"do", "run"}}, 600), "checking", "small");
    const auto* late = std::get_if<TimedOut>(&outcome);
    ASSERT_TRUE(late != nullptr) << outcome_summary(outcome);
    EXPECT_NE(late->phase.find("taken together"), std::string::npos);
  }
  EXPECT_GE(allowance->spent_s, 0.2);
}

}  // namespace
}  // namespace kernelpro
