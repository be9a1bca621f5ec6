// SPDX-License-Identifier: Apache-2.0
#include "machine/gpu_lease.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/cancel.h"
#include "base/clock.h"
#include "base/text.h"
#include "machine/gpu_watch.h"

namespace kernelpro {

namespace {

constexpr double kFirstPause = 0.001, kLongestPause = 0.05;  // seconds between attempts

// The GPU's UUID if NVML knows it, so that "", "0" and "GPU-..." are one lease.
std::string agreed_name(const std::string& gpu) {
  const Result<std::string> uuid = gpu_uuid(gpu);
  std::string name = uuid ? *uuid : gpu.empty() ? "first" : gpu;
  for (char& c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '-') c = '_';
  }
  return name.substr(0, 100);
}

// A folder where every user may create files, but remove only their own (sticky). Refuses a link or
// a file planted in its place.
bool usable_folder(const std::string& path, mode_t mode) {
  if (::mkdir(path.c_str(), mode) == 0) ::chmod(path.c_str(), mode);  // whatever the umask says
  struct stat st {};
  if (::lstat(path.c_str(), &st) != 0 || !S_ISDIR(st.st_mode)) return false;
  return ::access(path.c_str(), W_OK | X_OK) == 0;
}

// Opens the lock file, creating it if needed. With fs.protected_regular, O_CREAT fails on another
// user's file in a sticky folder, so first try to open it without. Read access is enough to lock.
Fd open_lock(const std::string& path) {
  constexpr int kSafe = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
  for (int attempt = 0; attempt < 3; ++attempt) {
    Fd file(::open(path.c_str(), O_RDWR | kSafe));
    if (!file.valid() && errno == EACCES) file.reset(::open(path.c_str(), O_RDONLY | kSafe));
    if (!file.valid() && errno == ENOENT) {
      file.reset(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | kSafe, 0666));
      if (file.valid()) ::fchmod(file.get(), 0666);
    }
    if (file.valid() || errno != EEXIST) return file;
  }
  return {};
}

enum class Locked { kYes, kLate, kFailed };  // kFailed: errno says why

Locked lock_until(double end, int file) {
  double pause = kFirstPause;
  while (::flock(file, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) return Locked::kFailed;
    if (real_clock().now_s() >= end || cancel_requested()) return Locked::kLate;
    ::usleep(static_cast<useconds_t>(pause * 1e6));
    pause = std::min(2 * pause, kLongestPause);
  }
  return Locked::kYes;
}

// The holder's description of itself.
std::string holder(int fd) {
  char text[256];
  const ssize_t n = ::pread(fd, text, sizeof text, 0);
  const std::string line =
      n > 0 ? std::string(trim(printable({text, static_cast<size_t>(n)}))) : "";
  return line.empty() ? "another process" : line;
}

void sign(int fd) {
  char name[64] = "";
  const Fd file(::open("/proc/self/comm", O_RDONLY | O_CLOEXEC));
  const ssize_t n = file.valid() ? ::read(file.get(), name, sizeof name - 1) : 0;
  const std::string text =
      "process " + std::to_string(::getpid()) + " (" +
      std::string(trim({name, static_cast<std::size_t>(std::max<ssize_t>(n, 0))})) + ")\n";
  if (::ftruncate(fd, 0) == 0) [[maybe_unused]]
    const ssize_t written = ::pwrite(fd, text.data(), text.size(), 0);
}

}  // namespace

std::string gpu_lease_dir() {
  const char* own = std::getenv("KERNELPRO_LEASES");
  if (own != nullptr && *own != '\0') return usable_folder(own, 01777) ? own : "";
  for (const std::string& path : {std::string("/tmp/kernelpro-leases"),
                                  "/tmp/kernelpro-leases-" + std::to_string(::getuid())}) {
    if (usable_folder(path, 01777)) return path;
  }
  return "";
}

GpuLease& GpuLease::operator=(GpuLease&& other) noexcept {
  if (this != &other) release();
  lock_ = std::move(other.lock_);
  return *this;
}

void GpuLease::release() {
  // Unlock explicitly: a process forked a moment ago may still hold a copy of the descriptor.
  if (lock_.valid()) ::flock(lock_.get(), LOCK_UN);
  lock_.reset();
}

Result<GpuLease> GpuLease::take(const std::string& gpu, double timeout_s) {
  const std::string folder = gpu_lease_dir();
  const std::string name = agreed_name(gpu);
  const std::string path = join(folder, name + ".lock");
  GpuLease lease;
  if (!folder.empty()) lease.lock_ = open_lock(path);
  if (!lease.held()) {
    return fail(ErrorKind::kEnvironment,
                folder.empty() ? "there is no folder for the lock file of GPU " + name
                               : "the lock file of GPU " + name + " cannot be opened (" + path +
                                     "): " + std::strerror(errno),
                "make /tmp writable, or set KERNELPRO_LEASES to a folder that all users of the GPU "
                "share");
  }
  const double end = real_clock().now_s() + timeout_s;
  // Whoever is next holds the gate: a process that releases the GPU and wants it again queues.
  const GpuLease gate(open_lock(join(folder, name + ".gate")));
  Locked locked = gate.held() ? lock_until(end, gate.lock_.get()) : Locked::kYes;
  if (locked == Locked::kYes) locked = lock_until(end, lease.lock_.get());
  if (locked == Locked::kFailed) {
    return fail(ErrorKind::kEnvironment, "cannot lock " + path + ": " + std::strerror(errno),
                "set KERNELPRO_LEASES to a folder on a local disk");
  }
  if (locked == Locked::kLate) {
    return fail(ErrorKind::kEnvironment,
                "GPU " + name + " is in use by " + holder(lease.lock_.get()) + " (waited " +
                    human_seconds(timeout_s) + ")",
                "wait for it to finish, or choose another GPU with --gpu");
  }
  sign(lease.lock_.get());
  return lease;
}

}  // namespace kernelpro
