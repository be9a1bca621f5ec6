// SPDX-License-Identifier: Apache-2.0
#include "run/store/lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/text.h"

namespace kernelpro {

namespace {

std::string holder(int fd) {
  char text[32] = {};
  const ssize_t n = ::pread(fd, text, sizeof text - 1, 0);
  const std::string pid(trim(std::string_view(text, n > 0 ? static_cast<std::size_t>(n) : 0)));
  return pid.empty() ? "another process" : "process " + pid;
}

}  // namespace

Result<RunLock> RunLock::take(const std::string& directory) {
  const std::string path = join(directory, "lock");
  RunLock lock;
  lock.fd_ = Fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (!lock.fd_.valid()) {
    return fail(ErrorKind::kStore, "cannot open " + path + ": " + std::strerror(errno),
                "check that the run folder exists and that you may write to it");
  }
  if (::flock(lock.fd_.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) {
      return fail(ErrorKind::kStore, "cannot lock " + path + ": " + std::strerror(errno),
                  "keep runs on a file system that supports flock");
    }
    return fail(
        ErrorKind::kBusy, "the run in " + directory + " is held by " + holder(lock.fd_.get()),
        "wait for it to finish or end it, or read the run with: kernelpro show " + directory);
  }
  const std::string pid = std::to_string(::getpid()) + "\n";
  // The id is only informative; a full disk must not lock anyone out of the run.
  if (::ftruncate(lock.fd_.get(), 0) == 0 &&
      ::pwrite(lock.fd_.get(), pid.data(), pid.size(), 0) < 0) {
    errno = 0;
  }
  return lock;
}

bool run_is_locked(const std::string& directory) {
  Fd fd(::open(join(directory, "lock").c_str(), O_RDONLY | O_CLOEXEC));
  return fd.valid() && ::flock(fd.get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

}  // namespace kernelpro
