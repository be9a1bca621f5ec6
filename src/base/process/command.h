// SPDX-License-Identifier: Apache-2.0
// What to run, and within which limits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/process/channel.h"
#include "base/process/sandbox.h"

namespace kernelpro {

// The descriptor at which a child finds its message channel, if it has one.
inline constexpr int kChannelFd = 3;

struct Limits {
  double wall_seconds = 60;
  std::int64_t output_kept = 256 << 10;   // bytes of stdout+stderr that are kept
  std::int64_t output_killed = 16 << 20;  // bytes after which the child is killed
  // Of a message from the child; a larger one ends it.
  std::size_t frame_bytes = Channel::kMaxFrame;
  std::size_t frame_fds = Channel::kMaxFds;
  // Resident memory of the process and all its descendants; 0 = unwatched.
  std::int64_t memory_bytes = 0;
  // Memory and processes are watched while nobody waits for the child, too: for children that live
  // long and rest between commands.
  bool at_rest = false;
};

struct Command {
  std::vector<std::string> argv;
  std::string cwd;                 // empty: ours
  std::vector<std::string> env;    // "NAME=value", added to ours
  std::vector<std::string> unset;  // names removed from ours
  // Of our environment, the child gets only these names. None: it gets all but `unset`.
  std::optional<std::vector<std::string>> keep = {};
  Limits limits;
  std::optional<Sandbox> sandbox = {};  // none: the child may do whatever we may
};

}  // namespace kernelpro
