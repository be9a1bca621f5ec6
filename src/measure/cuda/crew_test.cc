// SPDX-License-Identifier: Apache-2.0
// Which processes run candidates, and what happens to those without a context, using processes that
// need no GPU.
#include "measure/cuda/crew.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "base/files.h"

namespace kernelpro {
namespace {

struct Who {
  std::string connections, visible;
  std::size_t hidden = 0;
  std::int64_t pid = 0;
};

Who ask(CudaWorker& worker) {
  const Answer answer = worker.link.ask({{"do", "who"}}, 10);
  const auto* reply = std::get_if<Reply>(&answer);
  if (reply == nullptr) return {};
  const JsonReader r(reply->json);
  return {r.text("connections"), r.text("visible"), r.array("hidden").size(), r.integer("pid")};
}

class CudaCrewTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (find_program("python3").empty()) GTEST_SKIP() << "no python3";
    ::setenv("KERNELPRO_WORKER", KERNELPRO_SOURCE_DIR "/src/measure/cuda/testing/fake_worker.py",
             1);
    task_.name = "axpy";
    settings_.gpu = "2";
  }
  void TearDown() override {
    ::unsetenv("KERNELPRO_WORKER");
    ::unsetenv("FAKE_FAILS");
  }
  static void fails(const char* when) { ::setenv("FAKE_FAILS", when, 1); }

  Task task_;
  EvaluateSettings settings_;
  std::vector<CudaCase> cases_;
};

TEST_F(CudaCrewTest, StartsTheKindThatIsWantedAndFewQueuesDoForFewOnly) {
  CudaCrew crew(task_, settings_, cases_);
  crew.fill();
  auto worker = crew.take_native(Queues::kOne);
  ASSERT_TRUE(worker) << worker.error().text();
  Who who = ask(*worker);
  EXPECT_EQ(who.connections, "") << "it stood by already, and has more than are needed";
  EXPECT_EQ(who.visible, "2");
  EXPECT_EQ(who.hidden, 0u);
  crew.brief("GPU-x", {"/dev/nvidia0", "/dev/nvidia1"});
  for (int i = 0; i < 2; ++i) {  // two in a row predict the next
    crew.fill();
    worker = crew.take_native(Queues::kOne);
    ASSERT_TRUE(worker) << worker.error().text();
  }
  who = ask(*worker);
  EXPECT_EQ(who.connections, "1");
  EXPECT_EQ(who.visible, "GPU-x");
  EXPECT_EQ(who.hidden, 2u);
  crew.fill();
  worker = crew.take_native(Queues::kDefault);
  ASSERT_TRUE(worker) << worker.error().text();
  EXPECT_EQ(ask(*worker).connections, "");
  for (int i = 0; i < 4; ++i) {  // alternating kinds use the standby workers
    crew.fill();
    worker = crew.take_native(i % 2 == 0 ? Queues::kOne : Queues::kDefault);
    ASSERT_TRUE(worker) << worker.error().text();
    EXPECT_EQ(ask(*worker).connections, "");
  }
  crew.hide_nothing();
  worker = crew.take_native(Queues::kOne);
  ASSERT_TRUE(worker) << worker.error().text();
  EXPECT_EQ(ask(*worker).hidden, 0u);
}

TEST_F(CudaCrewTest, TheUsersOwnSettingDoesNotReachWorkers) {
  ::setenv("CUDA_DEVICE_MAX_CONNECTIONS", "1", 1);
  CudaCrew crew(task_, settings_, cases_);
  auto worker = crew.take_native(Queues::kDefault);
  ::unsetenv("CUDA_DEVICE_MAX_CONNECTIONS");
  ASSERT_TRUE(worker) << worker.error().text();
  EXPECT_EQ(ask(*worker).connections, "");
}

TEST_F(CudaCrewTest, SeveralStandByAndAreTakenOnce) {
  settings_.standby = 3;
  CudaCrew crew(task_, settings_, cases_);
  crew.fill();
  auto first = crew.take_native(Queues::kDefault);
  ASSERT_TRUE(first);
  auto second = crew.another(), third = crew.another();
  ASSERT_TRUE(second && third);
  EXPECT_FALSE(crew.another()) << "starts nothing";
  EXPECT_NE(ask(*first).pid, ask(*second).pid);
  EXPECT_NE(ask(*second).pid, ask(*third).pid);
  crew.retire(std::move(second->link));
  crew.wait_for_leaving();
  EXPECT_GT(ask(*third).pid, 0);
}

TEST_F(CudaCrewTest, TwoThatAreComparedAreAlike) {
  CudaCrew crew(task_, settings_, cases_);
  crew.fill();
  for (int i = 0; i < 4; ++i) {  // from the third on, with one queue
    auto two = crew.take_native(2, Queues::kOne);
    ASSERT_TRUE(two) << two.error().text();
    ASSERT_EQ(two->size(), 2u);
    const Who one = ask((*two)[0]), other = ask((*two)[1]);
    EXPECT_NE(one.pid, other.pid);
    EXPECT_EQ(one.connections, other.connections);
    crew.expect_native(2);
    crew.fill();
    crew.settle();
    EXPECT_TRUE(crew.another()) << "they stand by";
  }
  auto two = crew.take_native(2, Queues::kDefault);
  ASSERT_TRUE(two) << two.error().text();
  for (CudaWorker& worker : *two) EXPECT_EQ(ask(worker).connections, "");
}

TEST_F(CudaCrewTest, WhereHidingOtherGpusFailsTheyStayInSight) {
  fails("hidden");
  CudaCrew crew(task_, settings_, cases_);
  crew.brief("GPU-x", {"/dev/nvidia0"});
  crew.fill();
  for (int i = 0; i < 2; ++i) {
    auto worker = crew.take_native(Queues::kOne);
    ASSERT_TRUE(worker) << worker.error().text();
    const Who who = ask(*worker);
    EXPECT_EQ(who.hidden, 0u);
    EXPECT_EQ(who.visible, "2");
    crew.fill();
    crew.settle();
  }
}

TEST_F(CudaCrewTest, NoContextIsTheMachinesFault) {
  fails("always");
  CudaCrew crew(task_, settings_, cases_);
  crew.brief("GPU-x", {"/dev/nvidia0"});
  crew.fill();
  crew.settle();  // as before each evaluation
  const auto worker = crew.take_native(Queues::kOne);
  ASSERT_FALSE(worker);
  EXPECT_EQ(worker.error().kind, ErrorKind::kEnvironment);
  EXPECT_EQ(worker.error().message, "out of memory");
  EXPECT_EQ(worker.error().next, "stop the other programs on this GPU");
}

}  // namespace
}  // namespace kernelpro
