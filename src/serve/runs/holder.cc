// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "base/files.h"
#include "base/text.h"
#include "serve/runs/runs.h"

extern char** environ;

namespace kernelpro {

namespace {

// Commands that work on one run.
constexpr std::string_view kRunners = " optimize resume replay measure ";

std::string link_of(const std::string& path) {
  char text[4096];
  const ssize_t n = ::readlink(path.c_str(), text, sizeof text);
  return n > 0 ? std::string(text, static_cast<std::size_t>(n)) : "";
}

std::string real_path(const std::string& path) {
  char* found = ::realpath(path.c_str(), nullptr);
  const std::string text = found == nullptr ? "" : found;
  std::free(found);
  return text;
}

// A file of /proc, whose size is not known in advance.
std::string proc_text(const std::string& path) {
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string text;
  char bytes[4096];
  for (ssize_t n = 0; fd.valid() && (n = ::read(fd.get(), bytes, sizeof bytes)) > 0;) {
    text.append(bytes, static_cast<std::size_t>(n));
  }
  return text;
}

// Whether the process has the file open with a lock on it.
bool holds(const std::string& process, const std::string& lock) {
  for (const std::string& fd : list_dir(process + "/fd")) {
    if (link_of(process + "/fd/" + fd) != lock) continue;
    if (contains(proc_text(process + "/fdinfo/" + fd), "FLOCK")) return true;
  }
  return false;
}

int open_process(pid_t pid) { return static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)); }

tl::unexpected<Error> not_running(const std::string& path) {
  return fail(ErrorKind::kBusy, "no process of this machine runs " + path,
              "a run on another machine is stopped there, with Ctrl+C or kill -INT");
}

}  // namespace

std::optional<RunHolder> run_holder(const std::string& path) {
  const std::string lock = real_path(join(path, "lock"));
  if (lock.empty()) return std::nullopt;
  const std::string text = proc_text(lock);
  const pid_t pid = static_cast<pid_t>(std::atol(text.c_str()));
  const std::string process = "/proc/" + std::to_string(pid);
  if (pid <= 0 || !holds(process, lock)) return std::nullopt;
  const std::vector<std::string> words = split(proc_text(process + "/cmdline"), '\0');
  return RunHolder{pid, words.size() > 1 ? words[1] : ""};
}

std::string run_state(const std::string& path, bool finished) {
  if (run_holder(path)) return "running";
  return finished ? "finished" : "stopped";
}

Result<void> stop_run(const std::string& path) {
  auto holder = run_holder(path);
  if (!holder) return not_running(path);
  const pid_t pid = holder->pid;
  const Fd process(open_process(pid));
  // Its number may have passed to another process before the descriptor was opened, not after.
  holder = run_holder(path);
  if (!process.valid() || !holder || holder->pid != pid) return not_running(path);
  const std::string& command = holder->command;
  if (command.empty() || !contains(kRunners, " " + command + " ")) {
    return fail(ErrorKind::kBusy,
                "process " + std::to_string(holder->pid) + " (kernelpro " + command +
                    ") does more than this run",
                "stop the run where it was started: its client for mcp and serve, the terminal "
                "of the suite for bench");
  }
  if (::syscall(SYS_pidfd_send_signal, process.get(), SIGINT, nullptr, 0) != 0) {
    return fail(
        ErrorKind::kEnvironment,
        "cannot signal process " + std::to_string(holder->pid) + ": " + std::strerror(errno),
        "stop it as the user that started it");
  }
  return {};
}

Result<pid_t> start_runner(const std::vector<std::string>& arguments, const std::string& log) {
  const std::string program = join(executable_dir(), "kernelpro");
  std::vector<char*> argv = {const_cast<char*>(program.c_str())};
  for (const std::string& each : arguments) argv.push_back(const_cast<char*>(each.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&files, 1, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  posix_spawn_file_actions_adddup2(&files, 1, 2);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t defaults;
  ::sigemptyset(&defaults);
  for (const int signal : {SIGINT, SIGTERM, SIGPIPE}) ::sigaddset(&defaults, signal);
  posix_spawnattr_setsigdefault(&attributes, &defaults);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGDEF);
  pid_t pid = 0;
  const int code = ::posix_spawn(&pid, program.c_str(), &files, &attributes, argv.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  posix_spawnattr_destroy(&attributes);
  if (code == 0) return pid;
  return fail(ErrorKind::kEnvironment, "cannot start " + program + ": " + std::strerror(code),
              "run it in a terminal: kernelpro " + join_text(arguments, " "));
}

Result<pid_t> resume_run(const std::string& path) {
  if (run_holder(path)) {
    return fail(ErrorKind::kBusy, path + " is running already", "wait until it has stopped");
  }
  if (!is_dir(path)) {
    return fail(ErrorKind::kBusy, path + " is a run as text, which cannot be continued",
                "make a folder of it with: kernelpro pack " + path + " DIR");
  }
  const std::string folder = absolute(path);
  return start_runner({"resume", folder}, join(folder, "resume.log"));
}

}  // namespace kernelpro
