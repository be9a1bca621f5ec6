// SPDX-License-Identifier: Apache-2.0
#include "base/process/channel.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

#include "base/clock.h"

namespace kernelpro {

namespace {

class Deadline {
 public:
  explicit Deadline(double seconds)
      : forever_(seconds < 0), end_(real_clock().now_s() + (seconds < 0 ? 0 : seconds)) {}
  int left_ms() const {
    if (forever_) return -1;
    const double left = (end_ - real_clock().now_s()) * 1e3;
    return left <= 0 ? 0 : static_cast<int>(left) + 1;
  }

 private:
  bool forever_;
  double end_;
};

ChannelState wait_for(int fd, short events, const Deadline& deadline) {
  for (;;) {
    pollfd p{fd, events, 0};
    const int left = deadline.left_ms();
    const int n = ::poll(&p, 1, left);
    if (n > 0) return ChannelState::kOk;
    if (n == 0) return ChannelState::kTimeout;
    if (errno != EINTR) return ChannelState::kBroken;
  }
}

}  // namespace

std::pair<Channel, Fd> Channel::pair() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    throw Fatal({ErrorKind::kEnvironment,
                 std::string("cannot make a socket pair: ") + std::strerror(errno),
                 "raise the limit on open files (ulimit -n)"});
  }
  return {Channel(above_standard(Fd(ends[0]))), above_standard(Fd(ends[1]))};
}

ChannelState Channel::send(std::string_view bytes, const std::vector<int>& fds, double timeout_s) {
  KP_ASSERT(bytes.size() <= kMaxFrame && fds.size() <= kMaxFds);
  const Deadline deadline(timeout_s);
  const std::uint32_t length = static_cast<std::uint32_t>(bytes.size());
  std::string head(sizeof length, '\0');
  std::memcpy(head.data(), &length, sizeof length);

  std::size_t done = 0;
  const std::size_t total = head.size() + bytes.size();
  while (done < total) {
    iovec parts[2];
    int count = 0;
    if (done < head.size()) parts[count++] = {head.data() + done, head.size() - done};
    const std::size_t body = done > head.size() ? done - head.size() : 0;
    if (body < bytes.size()) {
      parts[count++] = {const_cast<char*>(bytes.data()) + body, bytes.size() - body};
    }
    msghdr message{};
    message.msg_iov = parts;
    message.msg_iovlen = static_cast<std::size_t>(count);
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * kMaxFds)];
    if (done == 0 && !fds.empty()) {
      std::memset(control, 0, sizeof control);
      message.msg_control = control;
      message.msg_controllen = CMSG_SPACE(sizeof(int) * fds.size());
      cmsghdr* c = CMSG_FIRSTHDR(&message);
      c->cmsg_level = SOL_SOCKET;
      c->cmsg_type = SCM_RIGHTS;
      c->cmsg_len = CMSG_LEN(sizeof(int) * fds.size());
      std::memcpy(CMSG_DATA(c), fds.data(), sizeof(int) * fds.size());
    }
    const ssize_t n = ::sendmsg(socket_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n > 0) {
      done += static_cast<std::size_t>(n);
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      const ChannelState state = wait_for(socket_.get(), POLLOUT, deadline);
      if (state != ChannelState::kOk) return state;
    } else if (errno != EINTR) {
      return errno == EPIPE || errno == ECONNRESET ? ChannelState::kClosed : ChannelState::kBroken;
    }
  }
  return ChannelState::kOk;
}

ChannelState Channel::receive(Frame* frame, double timeout_s) {
  const Deadline deadline(timeout_s);
  frame->bytes.clear();
  frame->fds.clear();
  std::uint32_t length = 0;
  char* target = reinterpret_cast<char*>(&length);
  std::size_t wanted = sizeof length;
  bool in_head = true;
  std::size_t done = 0;
  for (;;) {
    if (done == wanted) {
      if (!in_head) return ChannelState::kOk;
      if (length > most_bytes_) return ChannelState::kBroken;
      frame->bytes.resize(length);
      if (length == 0) return ChannelState::kOk;
      in_head = false;
      target = frame->bytes.data();
      wanted = length;
      done = 0;
    }
    const ChannelState state = wait_for(socket_.get(), POLLIN, deadline);
    if (state != ChannelState::kOk) return state;
    iovec part{target + done, wanted - done};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * kMaxFds)];
    // Without room for them the kernel closes descriptors itself, and says so (MSG_CTRUNC).
    if (most_fds_ > 0) {
      message.msg_control = control;
      message.msg_controllen = sizeof control;
    }
    const ssize_t n = ::recvmsg(socket_.get(), &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    if (n == 0) return ChannelState::kClosed;
    if (n < 0) {
      if (errno == EINTR || errno == EAGAIN || errno == EWOULDBLOCK) continue;
      return errno == ECONNRESET ? ChannelState::kClosed : ChannelState::kBroken;
    }
    for (cmsghdr* c = CMSG_FIRSTHDR(&message); c != nullptr; c = CMSG_NXTHDR(&message, c)) {
      if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
      const std::size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
      for (std::size_t i = 0; i < count; ++i) {
        int fd = -1;
        std::memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof fd);
        frame->fds.emplace_back(fd);
      }
    }
    if ((message.msg_flags & MSG_CTRUNC) != 0 || frame->fds.size() > most_fds_) {
      frame->fds.clear();
      return ChannelState::kBroken;
    }
    done += static_cast<std::size_t>(n);
  }
}

}  // namespace kernelpro
