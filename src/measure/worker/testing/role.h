// SPDX-License-Identifier: Apache-2.0
// For this room's tests: a role of the worker program in a thread of the test, which is its
// supervisor. One at a time.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/process/channel.h"
#include "base/process/subprocess.h"

namespace kernelpro::testing {

// What a role answered.
inline bool ok(const Json& answer) { return JsonReader(answer).flag("ok"); }
inline std::string error(const Json& answer) { return JsonReader(answer).text("error"); }
inline std::string rule(const Json& answer) { return JsonReader(answer).text("rule", "none"); }

class RoleThread {
 public:
  using Role = int (*)(int argc, char** argv);
  explicit RoleThread(Role role) {
    // The role's end of the channel takes descriptor 3; ours must not have it.
    if (::fcntl(kChannelFd, F_GETFD) < 0) {
      const int place = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
      if (place != kChannelFd) {
        ::dup2(place, kChannelFd);
        ::close(place);
      }
    }
    auto [ours, theirs] = Channel::pair();
    channel_ = std::move(ours);
    ::dup2(theirs.get(), kChannelFd);
    thread_ = std::thread([this, role] {
      char name[] = "kernelpro-worker", which[] = "role";
      char* arguments[] = {name, which, nullptr};
      status_ = role(2, arguments);
    });
  }
  ~RoleThread() { end(); }
  RoleThread(const RoleThread&) = delete;
  RoleThread& operator=(const RoleThread&) = delete;

  // Its answer; null if it ended instead.
  Json ask(const Json& message, const std::vector<int>& fds = {}) {
    return ask_bytes(dump_json(message), fds);
  }
  Json ask_bytes(const std::string& bytes, const std::vector<int>& fds = {}) {
    answer_ = Frame();
    if (channel_.send(bytes, fds) != ChannelState::kOk ||
        channel_.receive(&answer_, 600) != ChannelState::kOk) {
      return nullptr;
    }
    return parse_json(answer_.bytes).value_or(nullptr);
  }
  // Descriptors that came with the last answer.
  std::vector<Fd>& fds() { return answer_.fds; }
  // Closes the channel and waits; the role's exit status.
  int end() {
    channel_.close();
    if (thread_.joinable()) thread_.join();
    return status_;
  }

 private:
  Channel channel_;
  Frame answer_;
  std::thread thread_;
  int status_ = -1;
};

}  // namespace kernelpro::testing
