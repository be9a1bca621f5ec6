// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <functional>

#include "base/process/sandbox.h"

namespace kernelpro {

namespace {

// Runs `works` in a child inside the sandbox. Only async-signal-safe calls are allowed in it.
bool holds_inside(const Sandbox& sandbox, bool (*works)(pid_t parent)) {
  const Result<PreparedSandbox> prepared = PreparedSandbox::make(sandbox);
  if (!prepared) return false;
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child < 0) return false;
  if (child == 0) ::_exit(prepared->enter() == 0 && works(parent) ? 0 : 1);
  int status = 1;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return status == 0;
}

bool no_socket(pid_t) { return ::socket(AF_INET, SOCK_STREAM, 0) < 0 && errno == EACCES; }
bool no_signal(pid_t parent) { return ::kill(parent, 0) != 0 && errno == EPERM; }
bool no_foreign_file(pid_t) { return ::access("/", F_OK) == 0 && ::open("/proc/1/status", 0) < 0; }
bool not_root(pid_t) { return ::geteuid() != 0; }

SandboxSupport files_support() {
  SandboxSupport s{"files", false, "", ""};
  const int version = landlock_version();
  TempDir folder;  // as in a build
  const Sandbox sandbox = compiler_sandbox(folder.path(), {}, 0);
  if (version > 0 && holds_inside(sandbox, no_foreign_file)) {
    s.held = true;
    s.means = "Landlock " + std::to_string(version);
    return s;
  }
  if (::geteuid() == 0 && holds_inside(sandbox, not_root)) {
    s.held = true;
    s.means = "no Landlock; compilers and candidates run as the user nobody";
    return s;
  }
  s.means = "no Landlock in this kernel";
  s.follows = std::string("compilers and candidates can read what this user can (") +
              (::geteuid() == 0 ? "root: everything" : "your own files") +
              "): use Linux 5.13 or later with Landlock among its security modules "
              "(lsm=landlock,...), or run as a dedicated user";
  return s;
}

SandboxSupport network_support() {
  Sandbox sandbox;
  sandbox.read_all = true;
  if (holds_inside(sandbox, no_socket)) return {"network", true, "seccomp", ""};
  return {"network", false, "the kernel has no seccomp filters",
          "candidates could use the network: use a kernel with CONFIG_SECCOMP_FILTER"};
}

SandboxSupport signals_support() {
  Sandbox sandbox;
  sandbox.read_all = true;
  const bool scoped = landlock_version() >= 6;
  if (holds_inside(sandbox, no_signal)) {
    return {"other processes", true,
            scoped ? "Landlock keeps signals inside, seccomp refuses tracing"
                   : "seccomp refuses kill and tracing",
            ""};
  }
  return {"other processes", false, "neither Landlock 6 nor seccomp",
          "candidates could end other processes of this user: use a kernel with "
          "CONFIG_SECCOMP_FILTER"};
}

SandboxSupport leftovers_support() {
  int was = 0;
  if (::prctl(PR_GET_CHILD_SUBREAPER, &was) == 0) {
    return {"processes", true, "counted while they run, and all ended together", ""};
  }
  return {"processes", false, "the kernel has no PR_SET_CHILD_SUBREAPER",
          "processes that detach are left running: use Linux 3.4 or later"};
}

SandboxSupport memory_support() {
  if (::access("/proc/self/statm", R_OK) == 0) {
    return {"memory", true, "watched, summed over a child's processes", ""};
  }
  return {"memory", false, "/proc is not mounted", "candidates could use all memory: mount /proc"};
}

}  // namespace

std::vector<SandboxSupport> sandbox_support() {
  return {files_support(), network_support(), signals_support(), leftovers_support(),
          memory_support()};
}

}  // namespace kernelpro
