// SPDX-License-Identifier: Apache-2.0
// Child processes that cannot outlive, flood or outgrow us. Every child has its own process group,
// dies with this program (PR_SET_PDEATHSIG), has no standard input, and is watched for time, output
// and memory. A sandboxed child is also watched for its number of processes, and whatever it
// starts, however detached, dies with it (base/process/warden.h). A `Child` is used by one thread
// at a time and may outlive the thread that started it; different children are independent.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/process/channel.h"
#include "base/process/command.h"

namespace kernelpro {

// How a child ended, or why we killed it.
struct Exit {
  enum class Kind { kExited, kSignalled, kTimedOut, kFlooded, kOutOfMemory, kTooManyProcesses };
  Kind kind = Kind::kExited;
  int code = 0;        // exit status or signal number
  bool by_us = false;  // by a signal that we sent
  double wall_seconds = 0;
  double cpu_seconds = 0;
  std::int64_t max_rss_bytes = 0;
  std::string output;  // stdout and stderr interleaved, clipped to output_kept, printable
  bool ok() const { return kind == Kind::kExited && code == 0; }
  // Killed by a SIGKILL, SIGTERM, SIGINT or SIGHUP that we did not send: by a person, a batch
  // system or the out-of-memory killer. (Where nothing prevents it, a process may also send them to
  // itself.)
  bool from_outside() const;
  // "ended by signal 11 (Segmentation fault)", "ran longer than 10.0 s and was ended", ...
  std::string describe(const Limits& limits) const;
};

// Runs to completion. Fails (kEnvironment) only when the program cannot be started.
Result<Exit> run(const Command& command);

class RestWatch;

// A child with a message channel, which it finds at kChannelFd.
class Child {
 public:
  static Result<Child> start(const Command& command);
  Child();
  Child(Child&&) noexcept;
  Child& operator=(Child&&) noexcept;
  ~Child();  // kills the child

  bool running() const { return pid_ > 0; }
  // Pid of the child, or of its warden (sandboxes, unless `alone`).
  pid_t pid() const { return pid_; }

  // Fails when the child has closed its end; `finish` then gives the reason.
  bool send(std::string_view bytes, const std::vector<int>& fds = {});
  // Waits for the next frame while enforcing the limits. nullopt: the child exited or was killed;
  // `finish` gives the reason. The time limit counts from this call. `patience`: called before
  // killing a child that is out of time; returns how many more seconds it gets, 0 for none.
  std::optional<Frame> receive(double timeout_s, const std::function<double()>& patience = {});
  // Whether something from it waits to be received, or it has closed its end.
  bool has_spoken() const;
  // Kills the child if it still runs, reaps it and returns how it ended. Idempotent.
  const Exit& finish();
  // Kills it without waiting until it is gone. Do not kill its pid instead: that would look like a
  // kill from outside.
  void kill() { kill_group(); }
  // Closes our end, waits up to `timeout_s` for the child to exit under its limits, then kills it.
  const Exit& wait(double timeout_s);
  // The output so far.
  const std::string& output() const { return exit_.output; }

 private:
  friend Result<Exit> run(const Command& command);
  static Result<Child> start(const Command& command, bool with_channel);
  void drain();
  bool reap();
  bool over_limits();
  void end_rest();
  bool end_for(Exit::Kind why);
  void take_report(int* status);
  void kill_group();

  pid_t pid_ = -1;
  Channel channel_;
  Fd output_;
  Fd report_;  // from the warden, where there is one
  Limits limits_;
  int max_processes_ = 0;
  double next_look_ = 0;  // when to check the tree's memory and processes again
  std::unique_ptr<RestWatch> rest_;
  std::int64_t output_seen_ = 0;
  double started_ = 0;
  bool reaped_ = false;
  std::optional<Exit::Kind> verdict_;  // why we killed it
  bool ended_by_us_ = false;
  Exit exit_;
};

// For a process about to exit: from now on, dropping or finishing a child kills it without waiting
// until it is gone (a tenth of a second with a CUDA context). How it ended is then unknown. Any
// thread.
void leave_children_behind();

// "Segmentation fault" for 11, and so on.
std::string signal_name(int signal);

}  // namespace kernelpro
