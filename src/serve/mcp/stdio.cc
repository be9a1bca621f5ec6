// SPDX-License-Identifier: Apache-2.0
#include "serve/mcp/stdio.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/clock.h"
#include "base/files.h"
#include "base/process/subprocess.h"
#include "serve/mcp/frames.h"
#include "serve/mcp/session.h"
#include "serve/mcp/stop.h"

namespace kernelpro {

namespace {

constexpr double kStall = 60;         // seconds that a client may leave our answers unread
constexpr std::size_t kChunk = 4096;  // PIPE_BUF: writes this small to a ready pipe do not block

// Writes messages as lines. Any thread.
class LineOutlet : public Outlet {
 public:
  explicit LineOutlet(int fd) : fd_(fd) {}
  void send(const Json& message) override {
    const std::string line = dump_json(message) + "\n";
    const std::lock_guard<std::mutex> lock(mutex_);
    std::string_view rest = line;
    double end = real_clock().now_s() + kStall;
    while (!rest.empty() && !gone_) {
      pollfd polled{fd_, POLLOUT, 0};
      const int ready = ::poll(&polled, 1, 200);
      if (ready > 0 && (polled.revents & POLLOUT) != 0) {
        const ssize_t n = ::write(fd_, rest.data(), std::min(rest.size(), kChunk));
        if (n > 0) {
          rest.remove_prefix(static_cast<std::size_t>(n));
          end = real_clock().now_s() + kStall;
          continue;
        }
        if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
        gone_ = true;
      }
      if (ready > 0 || closing_ || real_clock().now_s() > end) gone_ = true;
    }
  }
  // No reader is left: abandons the current write.
  void close() { closing_ = true; }

 private:
  const int fd_;
  std::mutex mutex_;
  bool gone_ = false;  // guarded by mutex_
  std::atomic<bool> closing_{false};
};

}  // namespace

Result<void> serve_frames(const DeskSettings& settings, int in, int out, int stop) {
  Desk desk(settings);
  auto outlet = std::make_shared<LineOutlet>(out);
  std::shared_ptr<McpSession> session;
  Jobs jobs;
  session = std::make_shared<McpSession>(desk, jobs);
  FrameReader reader;
  const FrameReader::Sink sink{
      [&](std::string&& frame) { session->receive(read_rpc(frame), outlet); },
      [&] {
        outlet->send(rpc_error(nullptr, kRpcInvalidRequest,
                               "a message has " + std::to_string(kMaxFrameBytes) +
                                   " bytes at most: this one was skipped"));
      }};
  std::string buffer(64 << 10, '\0');
  for (;;) {
    pollfd polled[2] = {{in, POLLIN, 0}, {stop, POLLIN, 0}};
    if (::poll(polled, stop >= 0 ? 2 : 1, -1) < 0 && errno != EINTR) break;
    if (stop >= 0 && polled[1].revents != 0) break;
    if (polled[0].revents == 0) continue;
    const ssize_t n = ::read(in, buffer.data(), buffer.size());
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (n <= 0) break;
    reader.feed(std::string_view(buffer).substr(0, static_cast<std::size_t>(n)), sink);
  }
  outlet->close();
  session->cancel_all();
  return {};
}

Result<void> serve_stdio(const DeskSettings& settings) {
  const int stop = stop_descriptor();
  const Fd out(::dup(STDOUT_FILENO));
  if (!out.valid() || ::dup2(STDERR_FILENO, STDOUT_FILENO) < 0) {
    return fail(ErrorKind::kEnvironment,
                std::string("standard output cannot be used: ") + std::strerror(errno),
                "start this from an MCP client, or with its output in a pipe");
  }
  return serve_frames(settings, STDIN_FILENO, out.get(), stop);
}

}  // namespace kernelpro
