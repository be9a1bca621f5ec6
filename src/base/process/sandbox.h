// SPDX-License-Identifier: Apache-2.0
// What a child process may access. The parent declares it; it takes effect between fork and exec,
// so it binds every program that the child starts, and root too.
//
// Mechanisms, each used where the kernel has it (`sandbox_support` reports which): Landlock for
// files, signals and other processes' memory; seccomp for sockets, tracing, mounting and the like;
// dropped capabilities; resource limits; and watching (base/process/subprocess.h) for the two
// things that no limit enforces on root: the number of processes and their combined memory. Without
// Landlock, and running as root, the child becomes the user nobody if everything it needs stays
// reachable.
#pragma once

#include <linux/filter.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/files.h"

namespace kernelpro {

struct Sandbox {
  // Files, and folders with everything in them; paths that do not exist are skipped.
  std::vector<std::string> read;   // may be read and executed
  std::vector<std::string> write;  // may be read, executed, written, created and removed
  bool read_all = false;           // reading is unrestricted
  bool network = false;            // may create and connect sockets other than pairs
  bool secrets = false;            // environment variables such as API keys are kept
  // May read and write its pages in /proc/self/task: to name its threads, as CUDA must. And
  // read some of /proc/self: maps, status, ...
  bool own_pages = true;
  // Starts no processes (its own system-call filter enforces this), so it gets no warden.
  bool alone = false;
  int max_processes = 256;              // processes and threads at once, watched; 0: unwatched
  std::int64_t file_bytes = 4LL << 30;  // limit per written file
  int open_files = 4096;
  std::int64_t data_bytes = 0;  // private writable memory, per process; 0: no limit
  double cpu_seconds = 0;  // per process, enforced even after its parents are gone; 0: no limit
};

// Programs, libraries and settings that any program may need to read: /usr, /lib, the loader's
// cache, time zones, random numbers, ...; nothing that belongs to a user.
std::vector<std::string> system_roots();

// What CUDA and its libraries read of /proc and /sys: processors, memory, the driver, NVIDIA's
// devices. Nothing of other processes, networks, mounts or the machine's maker.
std::vector<std::string> gpu_system_files();

// Whether a folder is a place for many owners' files (/, /tmp, /home ...), or the user's home or
// above it: too much to let a child read.
bool holds_homes(const std::string& folder);

// Install root of a program: the folder above the one that holds the program (links followed),
// unless that is /, a folder that holds homes, or the user's home.
std::string program_root(const std::string& program);

// The same, plus the root of the path as given if that is a link: a Python environment links to an
// interpreter elsewhere and holds its packages itself.
std::vector<std::string> program_roots(const std::string& program);

// Names of the environment variables that compilers need. A source can make its compiler read the
// environment, so it gets no others (Command::keep).
std::vector<std::string> compiler_variables();

// For a compiler working in `folder`: reads the system and `roots`, writes only `folder`.
Sandbox compiler_sandbox(const std::string& folder, const std::vector<std::string>& roots,
                         double cpu_seconds);

// For Python that runs a candidate: reads the system, `roots` (the interpreter's prefix, the task's
// and the candidate's files, ...) and the GPU's device files; writes only `folder` and the devices.
Sandbox candidate_python_sandbox(const std::string& folder, const std::vector<std::string>& roots);

// The parts of a sandbox that allocate, prepared before fork. Use for one child only.
class PreparedSandbox {
 public:
  // Fails with kEnvironment when a root exists but cannot be opened.
  static Result<PreparedSandbox> make(const Sandbox& sandbox);
  // Call in the child; async-signal-safe, irreversible. Returns 0, or the errno of a step that
  // failed although the kernel supports it.
  int enter() const;

 private:
  Fd ruleset_;
  int landlock_abi_ = 0;
  bool own_pages_ = true;
  std::uint32_t nobody_ = 0;  // user to become; 0: stay
  std::vector<sock_filter> filter_;
  std::int64_t file_bytes_ = 0;
  int open_files_ = 0;
  std::int64_t data_bytes_ = 0;
  double cpu_seconds_ = 0;
};

// Environment variables whose names look like secrets (API keys, tokens, passwords).
std::vector<std::string> secret_variables();

struct SandboxSupport {
  std::string name;     // "files", "network", ...
  bool held = false;    // even for root
  std::string means;    // the mechanism, "Landlock 7", or why there is none
  std::string follows;  // when not held: what a candidate could do, and the remedy
};
// What this machine enforces. Tested in child processes; takes some milliseconds.
std::vector<SandboxSupport> sandbox_support();

// Landlock version of the kernel; 0: none.
int landlock_version();

}  // namespace kernelpro
