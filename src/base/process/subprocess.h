// SPDX-License-Identifier: Apache-2.0
// Child processes that cannot outlive, flood or outgrow us. Every child is its own process group,
// dies with this program (PR_SET_PDEATHSIG), has no standard input, and is watched for time, output
// and memory. A child with a sandbox is also watched for the number of its processes, and whatever
// it starts, however detached, ends with it (base/process/warden.h).
// A `Child` is used by one thread at a time, and may outlive the thread that started it; different
// children are independent.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/process/channel.h"
#include "base/process/sandbox.h"

namespace kernelpro {

struct Limits {
  double wall_seconds = 60;
  std::int64_t output_kept = 256 << 10;   // bytes of stdout+stderr that are kept
  std::int64_t output_killed = 16 << 20;  // bytes after which the child is ended
  // Resident memory of the process and all its descendants; 0 = unwatched.
  std::int64_t memory_bytes = 0;
};

struct Command {
  std::vector<std::string> argv;
  std::string cwd;                 // empty: ours
  std::vector<std::string> env;    // "NAME=value", added to ours
  std::vector<std::string> unset;  // names removed from ours
  Limits limits;
  std::optional<Sandbox> sandbox = {};  // none: everything that we may
};

// Why a child is no longer with us, or why we ended it.
struct Exit {
  enum class Kind { kExited, kSignalled, kTimedOut, kFlooded, kOutOfMemory, kTooManyProcesses };
  Kind kind = Kind::kExited;
  int code = 0;        // exit status or signal number
  bool by_us = false;  // we sent it a signal to end it
  double wall_seconds = 0;
  double cpu_seconds = 0;
  std::int64_t max_rss_bytes = 0;
  std::string output;  // stdout and stderr interleaved, clipped to output_kept, printable
  bool ok() const { return kind == Kind::kExited && code == 0; }
  // Ended by SIGKILL, SIGTERM, SIGINT or SIGHUP that we did not send, so by a person, a batch
  // system or the out-of-memory killer. (A process may send them to itself too, where nothing stops
  // it.)
  bool from_outside() const;
  // "ended by signal 11 (Segmentation fault)", "ran longer than 10.0 s and was ended", ...
  std::string describe(const Limits& limits) const;
};

// Runs to the end. Fails (kEnvironment) only when the program cannot be started.
Result<Exit> run(const Command& command);

// A child with a message channel: it finds its end at descriptor 3.
class Child {
 public:
  static constexpr int kChannelFd = 3;

  static Result<Child> start(const Command& command);
  Child() = default;
  Child(Child&&) noexcept;
  Child& operator=(Child&&) noexcept;
  ~Child();  // ends the child

  bool running() const { return pid_ > 0; }
  // Of the child, or of the warden above it (sandboxes, unless `alone`).
  pid_t pid() const { return pid_; }

  // Fails when the child has closed its end; the caller then asks `finish` why.
  bool send(std::string_view bytes, const std::vector<int>& fds = {});
  // Waits for the next frame, watching the limits meanwhile. nullopt: the child ended or was
  // ended (time counts from this call); `finish` tells why. `patience`: asked before a child is
  // ended for its time; how many seconds more it may take, 0 for none.
  std::optional<Frame> receive(double timeout_s, const std::function<double()>& patience = {});
  // Ends the child if it still runs, reaps it and tells how it ended. Idempotent.
  const Exit& finish();
  // Ends it at once, without waiting until it is gone. Not `kill` of its number, which would look
  // as if somebody else had ended it.
  void kill() { kill_group(); }
  // Closes our end, waits up to `timeout_s` for it to leave by itself under its limits, and ends
  // it after that.
  const Exit& wait(double timeout_s);
  // What it has printed so far.
  const std::string& output() const { return exit_.output; }

 private:
  friend Result<Exit> run(const Command& command);
  static Result<Child> start(const Command& command, bool with_channel);
  void drain();
  bool reap();
  bool over_limits();
  bool end_for(Exit::Kind why);
  void take_report(int* status);
  void kill_group();

  pid_t pid_ = -1;
  Channel channel_;
  Fd output_;
  Fd report_;  // of the warden, where there is one
  Limits limits_;
  int max_processes_ = 0;
  double next_look_ = 0;  // at the tree's memory and processes
  std::int64_t output_seen_ = 0;
  double started_ = 0;
  bool reaped_ = false;
  std::optional<Exit::Kind> verdict_;  // why we ended it
  bool ended_by_us_ = false;
  Exit exit_;
};

// For a process that is about to exit: from now on a child that is dropped or finished is ended,
// but nobody waits until it is gone (one with a CUDA context takes a tenth of a second). How it
// ended is not told. Any thread.
void leave_children_behind();

// "Segmentation fault" for 11, and so on.
std::string signal_name(int signal);

}  // namespace kernelpro
