// SPDX-License-Identifier: Apache-2.0
#include "base/process/spawn.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/process/spawner.h"
#include "base/process/warden.h"

extern char** environ;

namespace kernelpro {

namespace {

std::vector<std::string> child_environment(const Command& command) {
  std::vector<std::string> result;
  std::vector<std::string> unset = command.unset;
  if (command.sandbox && !command.sandbox->secrets) {
    for (std::string& name : secret_variables()) unset.push_back(std::move(name));
  }
  const auto name_of = [](const std::string& entry) { return entry.substr(0, entry.find('=')); };
  const auto has = [](const std::vector<std::string>& names, const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  for (char** e = environ; *e != nullptr; ++e) {
    const std::string entry = *e;
    const std::string name = name_of(entry);
    const bool replaced =
        std::any_of(command.env.begin(), command.env.end(),
                    [&](const std::string& own) { return name_of(own) == name; }) ||
        has(unset, name);
    if (!replaced && (!command.keep || has(*command.keep, name))) result.push_back(entry);
  }
  result.insert(result.end(), command.env.begin(), command.env.end());
  return result;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (std::string& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

struct Pipe {
  Fd read, write;
};

Result<Pipe> make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) == 0) {
    return Pipe{above_standard(Fd(ends[0])), above_standard(Fd(ends[1]))};
  }
  return fail(ErrorKind::kEnvironment, std::string("cannot make a pipe: ") + std::strerror(errno),
              "raise the limit on open files (ulimit -n)");
}

// Everything that the child needs between fork and exec, prepared before.
struct Launch {
  const char* program = nullptr;
  const char* cwd = nullptr;
  char* const* argv = nullptr;
  char* const* envp = nullptr;
  int output = -1;
  int error = -1;
  int channel = -1;
  int report = -1;
  const PreparedSandbox* sandbox = nullptr;
};

// Whatever was open where this program was started stays outside. Async-signal-safe.
void close_at_exec(int first) {
  constexpr unsigned kCloseOnExec = 4;  // CLOSE_RANGE_CLOEXEC
#ifdef SYS_close_range
  if (::syscall(SYS_close_range, first, ~0U, kCloseOnExec) == 0) return;  // Linux 5.11
#endif
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  const int most = files.rlim_cur < 1'000'000 ? static_cast<int>(files.rlim_cur) : 1'000'000;
  for (int fd = first; fd < most; ++fd) ::fcntl(fd, F_SETFD, FD_CLOEXEC);
}

// Only async-signal-safe calls.
[[noreturn]] void become(const Launch& launch, pid_t parent) {
  if (launch.report >= 0) parent = enter_warden(parent, launch.report);
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(127);
  const int null = ::open("/dev/null", O_RDONLY);
  if (null >= 0) ::dup2(null, 0);
  ::dup2(launch.output, 1);
  ::dup2(launch.output, 2);
  // Descriptors needed later are above these (above_standard).
  if (launch.channel >= 0) {
    ::dup2(launch.channel, kChannelFd);
  } else {
    ::close(kChannelFd);
  }
  close_at_exec(kChannelFd + 1);
  struct sigaction plain {};
  plain.sa_handler = SIG_DFL;
  for (const int s : {SIGINT, SIGTERM, SIGPIPE, SIGHUP}) ::sigaction(s, &plain, nullptr);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  int error = *launch.cwd == '\0' || ::chdir(launch.cwd) == 0 ? 0 : errno;
  if (error == 0 && launch.sandbox != nullptr) {
    error = launch.sandbox->enter();
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // cleared by a change of user
  }
  if (error == 0) {
    ::execve(launch.program, launch.argv, launch.envp);
    error = errno;
  }
  [[maybe_unused]] const ssize_t n = ::write(launch.error, &error, sizeof error);
  ::_exit(127);
}

}  // namespace

Result<Started> spawn(const Command& command, int channel_end) {
  KP_ASSERT(!command.argv.empty());
  const std::string program = find_program(command.argv[0]);
  if (program.empty()) {
    return fail(ErrorKind::kEnvironment, "the program " + command.argv[0] + " was not found",
                "install it or put it on PATH; `kernelpro doctor` lists what is missing");
  }
  KP_ASSIGN(Pipe output, make_pipe());
  KP_ASSIGN(Pipe errors, make_pipe());
  KP_ASSIGN(Pipe report, make_pipe());
  std::optional<PreparedSandbox> sandbox;
  if (command.sandbox) {
    KP_ASSIGN(sandbox, PreparedSandbox::make(*command.sandbox));
  }
  std::vector<std::string> argv_text = command.argv;
  std::vector<std::string> env_text = child_environment(command);
  std::vector<char*> argv = pointers(argv_text);
  std::vector<char*> envp = pointers(env_text);
  const bool warden = command.sandbox && !command.sandbox->alone;
  const Launch launch{program.c_str(),
                      command.cwd.c_str(),
                      argv.data(),
                      envp.data(),
                      output.write.get(),
                      errors.write.get(),
                      channel_end,
                      warden ? report.write.get() : -1,
                      sandbox ? &*sandbox : nullptr};
  const pid_t parent = ::getpid();
  pid_t pid = -1;
  int error = 0;
  on_spawner_thread([&] {
    pid = ::fork();
    if (pid == 0) become(launch, parent);
    error = errno;
  });
  if (pid < 0) {
    return fail(ErrorKind::kEnvironment,
                std::string("cannot start a process: ") + std::strerror(error),
                "free memory or raise the limit on processes (ulimit -u)");
  }
  ::setpgid(pid, pid);
  errors.write.reset();
  output.write.reset();
  report.write.reset();
  ssize_t n;
  do n = ::read(errors.read.get(), &error, sizeof error);
  while (n < 0 && errno == EINTR);
  if (n == static_cast<ssize_t>(sizeof error)) {
    ::waitpid(pid, nullptr, 0);
    return fail(ErrorKind::kEnvironment, "cannot run " + program + ": " + std::strerror(error),
                "check that the program is installed for this machine");
  }
  ::fcntl(output.read.get(), F_SETFL, O_NONBLOCK);
  return Started{pid, std::move(output.read), warden ? std::move(report.read) : Fd()};
}

}  // namespace kernelpro
