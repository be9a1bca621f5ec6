// SPDX-License-Identifier: Apache-2.0
// What a child process may touch, declared by its parent and applied between fork and exec, so that
// it holds for every program that the child starts, and for root.
//
// Means, each used where the kernel has it (`sandbox_support` tells): Landlock for files, signals
// and other processes' memory; seccomp for sockets, tracing, mounting and their like; dropped
// capabilities; resource limits; and watching (base/process/subprocess.h) for what has no limit
// that binds root: the number of processes and the memory of all of them together. Where Landlock
// is missing and we are root, the child becomes the user nobody if all that it needs can be reached
// so.
#pragma once

#include <linux/filter.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/files.h"

namespace kernelpro {

struct Sandbox {
  // Files and folders with all that is in them; what does not exist is passed over.
  std::vector<std::string> read;   // may be read and executed
  std::vector<std::string> write;  // may be read, executed, written, made and removed
  bool read_all = false;           // reading is not limited
  bool network = false;            // sockets other than pairs may be made and connected
  bool secrets = false;            // variables like API keys stay in the environment
  // Starts no processes, which its own system-call filter sees to: there is no warden above it.
  bool alone = false;
  int max_processes = 256;              // processes and threads at once, watched; 0: unwatched
  std::int64_t file_bytes = 4LL << 30;  // of one file that is written
  int open_files = 4096;
  double cpu_seconds = 0;  // of one process, even after its parents are gone; 0: no limit
};

// Programs, libraries and settings that any program may have to read to run: /usr, /lib, the
// loader's cache, time zones, random numbers, ...: nothing of any user's own.
std::vector<std::string> system_roots();

// Where a program and what it brings with it lie: the folder above the one that holds the program
// itself (links followed), unless that is / or a folder that holds homes or the user's home.
std::string program_root(const std::string& program);

// The same, and that of the program as it was named, where that is a link: a Python environment
// links to an interpreter elsewhere and holds its packages itself.
std::vector<std::string> program_roots(const std::string& program);

// For a compiler that works in `folder`: reads the system and `roots`, writes nothing else.
Sandbox compiler_sandbox(const std::string& folder, const std::vector<std::string>& roots,
                         double cpu_seconds);

// For Python that runs a candidate: reads the system, `roots` (the interpreter's prefix, the task's
// and the candidate's files, ...) and the GPU's device files; writes only `folder` and the devices.
Sandbox candidate_python_sandbox(const std::string& folder, const std::vector<std::string>& roots);

// The parts of a sandbox that need memory, made before fork. One child each.
class PreparedSandbox {
 public:
  // Fails with kEnvironment when a root cannot be opened for another reason than that it is not
  // there.
  static Result<PreparedSandbox> make(const Sandbox& sandbox);
  // In the child; async-signal-safe, cannot be undone. 0, or the errno of what failed although the
  // kernel has it.
  int enter() const;

 private:
  Fd ruleset_;
  int landlock_abi_ = 0;
  std::uint32_t nobody_ = 0;  // user to become; 0: stay
  std::vector<sock_filter> filter_;
  std::int64_t file_bytes_ = 0;
  int open_files_ = 0;
  double cpu_seconds_ = 0;
};

// Names of variables in our environment that look like secrets (API keys, tokens, passwords).
std::vector<std::string> secret_variables();

struct SandboxSupport {
  std::string name;     // "files", "network", ...
  bool held = false;    // for root too
  std::string means;    // by what: "Landlock 7", or why not
  std::string follows;  // when not held: what a candidate could then do, and the remedy
};
// What this machine enforces. Tries it out in child processes; takes some milliseconds.
std::vector<SandboxSupport> sandbox_support();

// Version of the kernel's Landlock; 0: none.
int landlock_version();

}  // namespace kernelpro
