// SPDX-License-Identifier: Apache-2.0
#include "serve/http/connection.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include "base/clock.h"

namespace kernelpro {

namespace {

constexpr int kSlice = 100;  // milliseconds between checks of `stopping`

}  // namespace

// Waits for bytes and receives them; false: none arrived before `until_s`.
bool HttpConnection::fill(double until_s) {
  char bytes[16384];
  while (!stopping_) {
    const double left = until_s - real_clock().now_s();
    if (left <= 0) return false;
    pollfd polled{socket_.get(), POLLIN, 0};
    const int ready = ::poll(&polled, 1, std::min(kSlice, static_cast<int>(left * 1000) + 1));
    if (ready <= 0) continue;
    const ssize_t n = ::recv(socket_.get(), bytes, sizeof bytes, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    buffer_.append(bytes, static_cast<std::size_t>(n));
    return true;
  }
  return false;
}

std::variant<HttpRequestHead, HttpFault> HttpConnection::head(double idle_s, double receive_s) {
  if (buffer_.empty() && !fill(real_clock().now_s() + idle_s)) return HttpFault{0, ""};
  const double until = real_clock().now_s() + receive_s;
  for (;;) {
    const std::size_t end = head_end(buffer_);
    if (end != std::string::npos && end <= kMaxHeadBytes) {
      auto read = read_head(std::string_view(buffer_).substr(0, end));
      buffer_.erase(0, end);
      return read;
    }
    if (buffer_.size() > kMaxHeadBytes) return HttpFault{431, "the head is too large"};
    if (!fill(until))
      return HttpFault{stopping_ || gone() ? 0 : 408, "the head did not come in time"};
  }
}

bool HttpConnection::body(std::size_t bytes, double receive_s, std::string* out) {
  const double until = real_clock().now_s() + receive_s;
  while (buffer_.size() < bytes) {
    if (!fill(until)) return false;
  }
  *out = buffer_.substr(0, bytes);
  buffer_.erase(0, bytes);
  return true;
}

bool HttpConnection::send(std::string_view bytes) {
  double until = real_clock().now_s() + send_s_;
  while (!bytes.empty()) {
    pollfd polled{socket_.get(), POLLOUT, 0};
    const int ready = ::poll(&polled, 1, kSlice);
    if (ready > 0) {
      const ssize_t n =
          ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (n > 0) {
        bytes.remove_prefix(static_cast<std::size_t>(n));
        until = real_clock().now_s() + send_s_;
        continue;
      }
      if (errno != EINTR && errno != EAGAIN) return false;
    }
    if (stopping_ || real_clock().now_s() > until) return false;
  }
  return true;
}

bool HttpConnection::gone() const {
  char byte = 0;
  const ssize_t n = ::recv(socket_.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
}

void HttpConnection::drain() {
  ::shutdown(socket_.get(), SHUT_WR);
  const double until = real_clock().now_s() + 0.5;
  while (buffer_.size() < (4u << 20) && fill(until)) {
  }
}

}  // namespace kernelpro
