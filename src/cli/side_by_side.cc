// SPDX-License-Identifier: Apache-2.0
#include "cli/side_by_side.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include "base/stop.h"

namespace kernelpro {

namespace {

constexpr unsigned kPollMicroseconds = 50'000;

int start(const std::vector<std::string>& command, bool quiet, pid_t* pid) {
  std::vector<char*> argv;
  for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  if (quiet) posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
  const int status = ::posix_spawn(pid, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  return status;
}

}  // namespace

Result<void> run_side_by_side(const std::vector<std::vector<std::string>>& commands, bool quiet) {
  std::vector<pid_t> running;
  Result<void> result;
  for (const auto& command : commands) {
    pid_t pid = 0;
    if (const int status = start(command, quiet, &pid); status != 0) {
      result = fail(ErrorKind::kEnvironment,
                    "cannot start " + command.front() + ": " + std::strerror(status),
                    "run the same command again; finished work is kept");
      break;
    }
    running.push_back(pid);
  }
  bool told = false;
  while (!running.empty()) {
    for (std::size_t i = running.size(); i-- > 0;) {
      int status = 0;
      const pid_t ended = ::waitpid(running[i], &status, WNOHANG);
      if (ended == 0 || (ended < 0 && errno == EINTR)) continue;
      running.erase(running.begin() + static_cast<std::ptrdiff_t>(i));
    }
    if (stop_requested() && !told) {
      for (const pid_t pid : running) ::kill(pid, SIGTERM);
      told = true;
    }
    ::usleep(kPollMicroseconds);
  }
  return result;
}

}  // namespace kernelpro
