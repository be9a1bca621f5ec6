// SPDX-License-Identifier: Apache-2.0
#include "machine/gpu_lease.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include "base/clock.h"
#include "base/text.h"

namespace kernelpro {
namespace {

class GpuLeaseTest : public ::testing::Test {
 protected:
  void SetUp() override { ::setenv("KERNELPRO_LEASES", dir_.path().c_str(), 1); }
  void TearDown() override { ::unsetenv("KERNELPRO_LEASES"); }
  TempDir dir_;
};

// A process that takes the lease, reports it and sleeps.
class Holder {
 public:
  explicit Holder(const std::string& gpu) {
    int ends[2];
    EXPECT_EQ(::pipe(ends), 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      const Result<GpuLease> lease = GpuLease::take(gpu, 5);
      const char said = lease ? 'y' : 'n';
      [[maybe_unused]] const ssize_t n = ::write(ends[1], &said, 1);
      for (;;) ::pause();
    }
    ::close(ends[1]);
    char said = 0;
    EXPECT_EQ(::read(ends[0], &said, 1), 1);
    EXPECT_EQ(said, 'y');
    ::close(ends[0]);
  }
  void kill() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }
  ~Holder() { kill(); }
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = -1;
};

TEST_F(GpuLeaseTest, OneProcessAtATimeAndAKilledHolderLeavesNothing) {
  Holder holder("GPU-test-1");
  const Result<GpuLease> refused = GpuLease::take("GPU-test-1", 0.05);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::kEnvironment);
  EXPECT_TRUE(contains(refused.error().message, "process " + std::to_string(holder.pid())))
      << refused.error().message;
  const Result<GpuLease> other = GpuLease::take("GPU-test-2", 0.05);
  EXPECT_TRUE(other && other->held());  // another GPU is free
  holder.kill();
  const Result<GpuLease> lease = GpuLease::take("GPU-test-1", 0.05);
  ASSERT_TRUE(lease) << lease.error().text();
  EXPECT_TRUE(lease->held());
}

TEST_F(GpuLeaseTest, WaitsUntilTheHolderIsDone) {
  Result<GpuLease> mine = GpuLease::take("GPU-test-1", 0);
  ASSERT_TRUE(mine);
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const auto say = [&](char word) { return ::write(ends[1], &word, 1) == 1; };
    if (GpuLease::take("GPU-test-1", 0) || !say('w')) ::_exit(1);
    const Result<GpuLease> lease = GpuLease::take("GPU-test-1", 300);
    ::_exit(lease && say('h') ? 0 : 2);
  }
  char said = 0;
  EXPECT_EQ(::read(ends[0], &said, 1), 1);
  EXPECT_EQ(said, 'w') << "it is refused a lease that is held";
  pollfd next{ends[0], POLLIN, 0};
  EXPECT_EQ(::poll(&next, 1, 50), 0) << "and waits";
  mine->release();
  EXPECT_FALSE(mine->held());
  int status = 1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST_F(GpuLeaseTest, WhoWantsItAgainDoesNotOvertakeWhoWaits) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    for (;;) {
      Result<GpuLease> lease = GpuLease::take("GPU-test-1", 300);
      if (!lease || ::write(ends[1], "h", 1) != 1) ::_exit(1);
      ::usleep(50'000);
      lease->release();  // and takes it again at once
    }
  }
  char said = 0;
  EXPECT_EQ(::read(ends[0], &said, 1), 1);
  const Result<GpuLease> mine = GpuLease::take("GPU-test-1", 20);
  EXPECT_TRUE(mine) << mine.error().text();
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST_F(GpuLeaseTest, AProgramThatWeStartDoesNotKeepIt) {
  Result<GpuLease> mine = GpuLease::take("GPU-test-1", 0);
  ASSERT_TRUE(mine);
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::execl("/bin/sleep", "sleep", "60", nullptr);
    ::_exit(1);
  }
  ::close(ends[1]);
  char none = 0;
  EXPECT_EQ(::read(ends[0], &none, 1), 0);  // closed: the program has begun
  ::close(ends[0]);
  const std::string files = "/proc/" + std::to_string(child) + "/fd";
  for (const std::string& each : list_dir(files)) {
    char target[512] = "";
    [[maybe_unused]] const ssize_t n =
        ::readlink(join(files, each).c_str(), target, sizeof target - 1);
    EXPECT_FALSE(contains(target, "GPU-test-1")) << target;
  }
  mine->release();
  EXPECT_TRUE(GpuLease::take("GPU-test-1", 0));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

TEST_F(GpuLeaseTest, NamesAreOnlyNames) {
  const Result<GpuLease> lease = GpuLease::take("../../etc/passwd", 0);
  ASSERT_TRUE(lease) << lease.error().text();
  EXPECT_EQ(list_dir(dir_.path()),
            (std::vector<std::string>{"______etc_passwd.gate", "______etc_passwd.lock"}));
}

TEST_F(GpuLeaseTest, ALinkInTheFilesPlaceIsNotFollowed) {
  const std::string victim = join(dir_.path(), "victim");
  ASSERT_TRUE(write_file(victim, "precious"));
  ASSERT_EQ(::symlink(victim.c_str(), join(dir_.path(), "GPU-x.lock").c_str()), 0);
  EXPECT_FALSE(GpuLease::take("GPU-x", 0));
  EXPECT_EQ(*read_file(victim), "precious");
}

TEST_F(GpuLeaseTest, OtherUsersMayLockTheFileToo) {
  ASSERT_TRUE(GpuLease::take("GPU-test-1", 0));
  struct stat st {};
  ASSERT_EQ(::stat(join(dir_.path(), "GPU-test-1.lock").c_str(), &st), 0);
  EXPECT_EQ(st.st_mode & 0777, 0666u);
  if (::geteuid() != 0) GTEST_SKIP() << "becoming another user needs root";
  ASSERT_EQ(::chmod(dir_.path().c_str(), 01777), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    if (::setgid(65534) != 0 || ::setuid(65534) != 0) ::_exit(2);
    ::_exit(GpuLease::take("GPU-test-1", 0.1) ? 0 : 1);
  }
  int status = 1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST_F(GpuLeaseTest, AFolderThatCannotBeUsedIsTheMachinesFault) {
  ::setenv("KERNELPRO_LEASES", "/proc/nowhere", 1);
  const Result<GpuLease> lease = GpuLease::take("GPU-test-1", 0);
  ASSERT_FALSE(lease);
  EXPECT_TRUE(contains(lease.error().next, "KERNELPRO_LEASES"));
}

}  // namespace
}  // namespace kernelpro
