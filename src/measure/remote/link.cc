// SPDX-License-Identifier: Apache-2.0
#include "measure/remote/link.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/text.h"

extern char** environ;  // NOLINT: POSIX names it

namespace kernelpro {

namespace {

constexpr double kLongestSend_s = 60;  // a frame that takes longer ends the connection
constexpr double kToEnd_s = 0.5;       // for the command to end by itself
constexpr std::size_t kComplaint = 4096;

}  // namespace

Result<std::unique_ptr<Link>> Link::start(const StationAddress& address,
                                          const std::string& session) {
  std::unique_ptr<Link> link(new Link);
  auto [ours, theirs] = Channel::pair();
  link->errors_ = Fd(::memfd_create("kernelpro-link", MFD_CLOEXEC));
  std::vector<std::string> words = address.command;
  words.push_back(session);
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);

  posix_spawn_file_actions_t files;
  ::posix_spawn_file_actions_init(&files);
  ::posix_spawn_file_actions_adddup2(&files, theirs.get(), STDIN_FILENO);
  ::posix_spawn_file_actions_adddup2(&files, theirs.get(), STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&files, link->errors_.get(), STDERR_FILENO);
  posix_spawnattr_t how;
  ::posix_spawnattr_init(&how);
  // A group of its own: Ctrl-C is for the run, which ends its step before it closes connections.
  ::posix_spawnattr_setflags(&how, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
  sigset_t none;
  ::sigemptyset(&none);
  ::posix_spawnattr_setsigmask(&how, &none);
  const int status = ::posix_spawnp(&link->pid_, argv[0], &files, &how, argv.data(), environ);
  ::posix_spawn_file_actions_destroy(&files);
  ::posix_spawnattr_destroy(&how);
  if (status != 0) {
    link->pid_ = -1;
    return fail(ErrorKind::kEnvironment,
                "cannot start " + words.front() + ": " + std::strerror(status),
                "install it (Debian: apt install openssh-client), or set KERNELPRO_SSH");
  }
  link->channel_ = std::move(ours);
  link->channel_.accept_at_most(Channel::kMaxFrame, 0);
  return link;
}

Link::~Link() {
  cut();
  channel_.close();
  if (pid_ <= 0) return;
  const double until = real_clock().now_s() + kToEnd_s;
  while (::waitpid(pid_, nullptr, WNOHANG) == 0) {
    if (real_clock().now_s() > until) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
      return;
    }
    ::usleep(2000);
  }
}

bool Link::send(const std::string& bytes) {
  if (bytes.size() <= Channel::kMaxFrame &&
      channel_.send(bytes, {}, kLongestSend_s) == ChannelState::kOk) {
    return true;
  }
  cut();  // half a frame may have gone
  return false;
}

ChannelState Link::receive(std::string* bytes, double timeout_s) {
  Frame frame;
  const ChannelState state = channel_.receive(&frame, timeout_s);
  *bytes = std::move(frame.bytes);
  return state;
}

void Link::cut() {
  if (channel_.valid()) ::shutdown(channel_.fd(), SHUT_RDWR);
}

std::string Link::complaint() const {
  std::string text(kComplaint, '\0');
  const off_t size = ::lseek(errors_.get(), 0, SEEK_END);
  const off_t from =
      size > static_cast<off_t>(kComplaint) ? size - static_cast<off_t>(kComplaint) : 0;
  const ssize_t got = ::pread(errors_.get(), text.data(), text.size(), from);
  text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  std::string last;
  for (const std::string& line : lines(text)) {
    if (!trim(line).empty()) last = std::string(trim(line));
  }
  return printable(last);
}

}  // namespace kernelpro
