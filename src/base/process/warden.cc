// SPDX-License-Identifier: Apache-2.0
// Runs after fork in a process that may have had other threads: only async-signal-safe calls, no
// heap.
#include "base/process/warden.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace kernelpro {

namespace {

constexpr int kRounds = 5000;  // of one millisecond, to kill everything

pid_t number_at(const char* text) {
  pid_t value = 0;
  for (; *text >= '0' && *text <= '9'; ++text) value = value * 10 + (*text - '0');
  return value;
}

// The parent of a process, from /proc/PID/stat; 0 when it is gone.
pid_t parent_of(const char* pid) {
  char path[64] = "/proc/";
  std::strncat(path, pid, 20);
  std::strcat(path, "/stat");
  char text[512];
  const int fd = ::open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  const ssize_t n = ::read(fd, text, sizeof text - 1);
  ::close(fd);
  if (n <= 0) return 0;
  text[n] = '\0';
  const char* rest = std::strrchr(text, ')');  // then " S 123"
  return rest != nullptr && std::strlen(rest) > 4 ? number_at(rest + 4) : 0;
}

// Kills our children by scanning all processes: for kernels that do not list children.
void kill_children_slowly() {
  const int folder = ::open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return;
  const pid_t own = ::getpid();
  alignas(8) char entries[4096];
  for (;;) {
    const long n = ::syscall(SYS_getdents64, folder, entries, sizeof entries);
    if (n <= 0) break;
    for (long at = 0; at < n;) {
      unsigned short length = 0;  // struct linux_dirent64: ino, off, reclen, type, name
      std::memcpy(&length, entries + at + 16, sizeof length);
      const char* name = entries + at + 19;
      if (*name >= '0' && *name <= '9' && parent_of(name) == own) {
        ::kill(number_at(name), SIGKILL);
      }
      at += length;
    }
  }
  ::close(folder);
}

void kill_children() {
  const int list = ::open("/proc/thread-self/children", O_RDONLY | O_CLOEXEC);
  if (list < 0) return kill_children_slowly();
  char text[4096];
  const ssize_t n = ::read(list, text, sizeof text - 1);
  ::close(list);
  if (n <= 0) return;
  text[n] = '\0';
  // A number cut off at the end is left for the next round.
  for (char* at = text; char* end = std::strchr(at, ' '); at = end + 1) {
    const pid_t pid = number_at(at);
    if (pid > 1) ::kill(pid, SIGKILL);
  }
}

// Kills all our descendants, whoever their parents were.
void end_all() {
  const timespec pause{0, 1'000'000};
  for (int round = 0; round < kRounds; ++round) {
    kill_children();
    for (;;) {
      const pid_t gone = ::waitpid(-1, nullptr, WNOHANG);
      if (gone < 0 && errno == ECHILD) return;
      if (gone <= 0) break;
    }
    ::nanosleep(&pause, nullptr);
  }
}

void tell(int report, int status, const rusage& usage) {
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  WardenReport text;
  text.status = status;
  text.cpu_seconds = seconds(usage.ru_utime) + seconds(usage.ru_stime);
  text.max_rss_bytes = usage.ru_maxrss * 1024LL;
  [[maybe_unused]] const ssize_t n = ::write(report, &text, sizeof text);
}

// Keeps only the report pipe: the supervisor's sockets, if left open here, would keep its other
// children from seeing end of file.
void close_all_but(int kept) {
#ifdef SYS_close_range
  const bool below = kept <= 0 || ::syscall(SYS_close_range, 0, kept - 1, 0) == 0;
  if (below && ::syscall(SYS_close_range, kept + 1, ~0U, 0) == 0) return;
#endif
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  const int most = files.rlim_cur < 1'000'000 ? static_cast<int>(files.rlim_cur) : 1'000'000;
  for (int fd = 0; fd < most; ++fd) {
    if (fd != kept) ::close(fd);
  }
}

[[noreturn]] void watch(pid_t child, int report, const sigset_t& all, pid_t supervisor) {
  close_all_but(report);
  for (;;) {
    siginfo_t from{};
    const int signal = ::sigwaitinfo(&all, &from);
    if (signal == SIGTERM || signal == SIGINT || signal == SIGHUP) {
      // A batch system signals every process of a job; the supervisor decides what that means.
      if (from.si_pid != supervisor && ::getppid() == supervisor) continue;
      tell(report, signal, {});
      break;
    }
    if (signal != SIGCHLD) continue;
    for (;;) {
      int status = 0;
      rusage usage{};
      const pid_t gone = ::wait4(-1, &status, WNOHANG, &usage);
      if (gone <= 0) break;
      if (gone != child) continue;
      tell(report, status, usage);
      end_all();
      ::_exit(0);
    }
  }
  end_all();
  ::_exit(0);
}

}  // namespace

pid_t enter_warden(pid_t supervisor, int report) {
  ::setpgid(0, 0);
  sigset_t all;
  sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, nullptr);
  struct sigaction plain {};
  plain.sa_handler = SIG_DFL;
  ::sigaction(SIGCHLD, &plain, nullptr);
  ::prctl(PR_SET_NAME, "kernelpro-ward", 0, 0, 0);
  ::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != supervisor) ::_exit(127);
  const pid_t warden = ::getpid();
  const pid_t child = ::_Fork();
  if (child < 0) ::_exit(127);
  if (child > 0) watch(child, report, all, supervisor);
  return warden;
}

}  // namespace kernelpro
