// SPDX-License-Identifier: Apache-2.0
// Frames of bytes, with file descriptors attached, over a Unix stream socket: the link between the
// supervisor and its worker processes. A frame is a 4-byte little-endian length and that many
// bytes. The peer may be hostile: lengths are checked, waits are bounded. One thread per end; calls
// block up to their time limit.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/files.h"

namespace kernelpro {

struct Frame {
  std::string bytes;
  std::vector<Fd> fds;
};

enum class ChannelState { kOk, kTimeout, kClosed, kBroken };

class Channel {
 public:
  static constexpr std::size_t kMaxFrame = 256u << 20;
  static constexpr std::size_t kMaxFds = 64;  // per frame

  Channel() = default;
  explicit Channel(Fd socket) : socket_(std::move(socket)) {}

  // A connected pair; the second end is for a child.
  static std::pair<Channel, Fd> pair();

  // What `receive` accepts in one frame from here on; a frame with more breaks the channel. Nothing
  // beyond it is allocated, and descriptors beyond it are closed at once.
  void accept_at_most(std::size_t bytes, std::size_t fds) {
    most_bytes_ = bytes;
    most_fds_ = fds;
  }

  bool valid() const { return socket_.valid(); }
  int fd() const { return socket_.get(); }
  void close() { socket_.reset(); }

  // Sends the whole frame. The caller keeps ownership of the descriptors.
  ChannelState send(std::string_view bytes, const std::vector<int>& fds = {},
                    double timeout_s = 10.0);
  // Waits up to `timeout_s` for the whole next frame (negative: forever).
  ChannelState receive(Frame* frame, double timeout_s);

 private:
  Fd socket_;
  std::size_t most_bytes_ = kMaxFrame;
  std::size_t most_fds_ = kMaxFds;
};

}  // namespace kernelpro
