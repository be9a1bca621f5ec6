// SPDX-License-Identifier: Apache-2.0
#include "measure/remote/resident.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "base/cancel.h"
#include "base/clock.h"
#include "base/files.h"
#include "base/json.h"
#include "base/process/channel.h"
#include "measure/remote/frames.h"
#include "measure/remote/service.h"

extern char** environ;  // NOLINT: POSIX names it

namespace kernelpro {

namespace {

constexpr double kGrace_s = 900;
constexpr double kToStart_s = 20;      // for a resident to listen
constexpr double kLongestSend_s = 60;  // of one frame; then the connection is dropped
constexpr std::size_t kBlock = 256 << 10;

bool is_session(const std::string& name) {
  return name.size() == 32 && name.find_first_not_of("0123456789abcdef") == std::string::npos;
}

tl::unexpected<Error> cannot(const std::string& what) {
  return fail(ErrorKind::kEnvironment, "cannot " + what + ": " + std::strerror(errno),
              "set XDG_RUNTIME_DIR or TMPDIR to a folder of your own that takes sockets");
}

// A folder that only this user may enter.
Result<std::string> socket_folder() {
  const char* run = std::getenv("XDG_RUNTIME_DIR");
  const char* temporary = std::getenv("TMPDIR");
  std::string folder = run != nullptr && *run == '/'               ? run
                       : temporary != nullptr && *temporary == '/' ? temporary
                                                                   : "/tmp";
  folder = join(folder, "kernelpro-" + std::to_string(::getuid()));
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) return cannot("make " + folder);
  struct stat info {};
  if (::lstat(folder.c_str(), &info) != 0) return cannot("look at " + folder);
  if (!S_ISDIR(info.st_mode) || info.st_uid != ::getuid() || (info.st_mode & 0077) != 0) {
    return fail(ErrorKind::kEnvironment, folder + " is not a folder of yours alone",
                "remove it, or set TMPDIR to a folder of your own");
  }
  return folder;
}

Result<sockaddr_un> socket_address(const std::string& session) {
  KP_ASSIGN(const auto folder, socket_folder());
  const std::string path = join(folder, session.substr(0, 16));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    errno = ENAMETOOLONG;
    return cannot("make a socket in " + folder);
  }
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  return address;
}

Fd connected(const sockaddr_un& address) {
  Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket.valid() ||
      ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return Fd();
  }
  return socket;
}

// As a process of its own session, which no end of ours takes along.
Result<void> start_resident(const std::string& session) {
  const std::string program = "/proc/self/exe";
  std::vector<std::string> words = {"kernelpro", "station", "--reside", session};
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t files;
  ::posix_spawn_file_actions_init(&files);
  ::posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  ::posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawnattr_t how;
  ::posix_spawnattr_init(&how);
  ::posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSID);
  pid_t pid = -1;
  const int status = ::posix_spawn(&pid, program.c_str(), &files, &how, argv.data(), environ);
  ::posix_spawn_file_actions_destroy(&files);
  ::posix_spawnattr_destroy(&how);
  errno = status;
  if (status != 0) return cannot("start a resident process");
  return {};
}

// False: one side has ended.
bool pass_on(int from, int to, std::vector<char>* block) {
  const ssize_t got = ::read(from, block->data(), block->size());
  if (got < 0) return errno == EINTR || errno == EAGAIN;
  if (got == 0) return false;
  for (ssize_t done = 0; done < got;) {
    const ssize_t n = ::write(to, block->data() + done, static_cast<std::size_t>(got - done));
    if (n > 0) done += n;
    if (n < 0 && errno != EINTR) return false;
  }
  return true;
}

void pass_all_on(int from, int to) {
  std::vector<char> block(kBlock);
  while (pass_on(from, to, &block)) {
  }
}

// Everything about the session's questions; outlives connections.
class Resident {
 public:
  Resident(Fd listening, StationMaker maker)
      : listening_(std::move(listening)), service_(std::move(maker)) {}
  ~Resident() {
    for (Work& work : works_) work.cancelled = true;
    for (Work& work : works_) work.thread.join();
  }

  void run();

 private:
  struct Work {
    std::uint64_t id = 0;
    std::atomic<bool> cancelled{false};
    std::atomic<bool> over{false};
    std::thread thread;
  };

  void accept_next();
  void hear(const std::string& frame);
  void greet(const std::vector<std::uint64_t>& waiting);
  void begin(std::uint64_t id, const std::string& verb, const std::string& body);
  void say(const std::string& frame);
  void send(const std::string& frame);
  void sweep();

  Fd listening_;
  std::mutex sending_;  // one frame at a time; guards what follows
  std::unique_ptr<Channel> channel_;
  bool greeted_ = false;
  double alone_since_ = real_clock().now_s();
  bool bye_ = false;
  std::mutex mutex_;                              // guards what follows
  std::map<std::uint64_t, std::string> answers_;  // not yet received
  std::set<std::uint64_t> running_;
  Service service_;
  std::list<Work> works_;  // the main thread's
};

double grace_s() {
  const char* set = std::getenv("KERNELPRO_STATION_GRACE");
  const double seconds = set != nullptr ? std::strtod(set, nullptr) : 0;
  return seconds > 0 ? seconds : kGrace_s;
}

void Resident::run() {
  const double grace = grace_s();
  while (!bye_) {
    pollfd polled[2] = {{listening_.get(), POLLIN, 0}, {-1, POLLIN, 0}};
    if (channel_ != nullptr) polled[1].fd = channel_->fd();
    if (::poll(polled, 2, 500) < 0 && errno != EINTR) return;
    sweep();
    if (polled[0].revents != 0) accept_next();
    if (channel_ == nullptr) {
      if (real_clock().now_s() - alone_since_ > grace) return;
      continue;
    }
    if (polled[1].revents == 0 || polled[1].fd != channel_->fd()) continue;
    Frame frame;
    if (channel_->receive(&frame, kLongestSend_s) == ChannelState::kOk) {
      hear(frame.bytes);
      continue;
    }
    const std::lock_guard lock(sending_);
    channel_.reset();
    greeted_ = false;
    alone_since_ = real_clock().now_s();
  }
}

// A new connection replaces the old one, which may have been lost without a sign.
void Resident::accept_next() {
  Fd socket(::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!socket.valid()) return;
  auto channel = std::make_unique<Channel>(std::move(socket));
  channel->accept_at_most(Channel::kMaxFrame, 0);
  const std::lock_guard lock(sending_);
  channel_ = std::move(channel);
  greeted_ = false;
}

void Resident::say(const std::string& frame) {
  const std::lock_guard lock(sending_);
  if (greeted_) send(frame);
}

// REQUIRES: `sending_` is held, and there is a channel.
void Resident::send(const std::string& frame) {
  const bool fits = frame.size() <= Channel::kMaxFrame;
  if (!fits || channel_->send(frame, {}, kLongestSend_s) != ChannelState::kOk) {
    // Half of it may have gone. The main thread notices, and the client asks again.
    ::shutdown(channel_->fd(), SHUT_RDWR);
  }
}

// Nothing is said on a connection before this. An answer that comes meanwhile waits for it.
void Resident::greet(const std::vector<std::uint64_t>& waiting) {
  const std::lock_guard sending(sending_);
  std::vector<std::uint64_t> known;
  std::vector<std::string> ready;
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(answers_, [&](const auto& each) {
      return std::find(waiting.begin(), waiting.end(), each.first) == waiting.end();
    });
    for (const std::uint64_t id : waiting) {
      const auto found = answers_.find(id);
      if (found != answers_.end()) ready.push_back(found->second);
      if (found != answers_.end() || running_.contains(id)) known.push_back(id);
    }
  }
  greeted_ = true;
  send(welcome_frame(known));
  for (const std::string& answer : ready) send(answer);
}

void Resident::hear(const std::string& text) {
  const auto json = parse_json(text);
  if (!json) return;
  const JsonReader r(*json);
  if (r.member("hello") != nullptr) {
    std::vector<std::uint64_t> waiting;
    for (const Json& id : r.array("waiting")) {
      if (id.is_number_unsigned()) waiting.push_back(id.get<std::uint64_t>());
    }
    greet(waiting);
  } else if (r.member("ask") != nullptr) {
    begin(r.natural("id"), r.text("ask"), dump_json(r.object("body")));
  } else if (r.member("got") != nullptr) {
    const std::lock_guard lock(mutex_);
    answers_.erase(r.natural("got"));
  } else if (r.member("cancel") != nullptr) {
    for (Work& work : works_) {
      if (work.id == r.natural("cancel")) work.cancelled = true;
    }
  } else if (r.flag("bye")) {
    bye_ = true;
  }
}

void Resident::begin(std::uint64_t id, const std::string& verb, const std::string& body) {
  {
    const std::lock_guard lock(mutex_);
    if (answers_.contains(id) || !running_.insert(id).second) return;  // asked again
  }
  Work& work = works_.emplace_back();
  work.id = id;
  work.thread = std::thread([this, &work, id, verb, body] {
    const CancelScope scope(&work.cancelled);
    Result<std::string> answer =
        service_.answer(verb, body, [&](const std::string& phase) { say(phase_frame(id, phase)); });
    const std::string frame = answer_frame(id, answer);
    {
      const std::lock_guard lock(mutex_);
      answers_[id] = frame;
      running_.erase(id);
    }
    say(frame);
    work.over = true;
  });
}

void Resident::sweep() {
  for (auto work = works_.begin(); work != works_.end();) {
    if (!work->over) {
      ++work;
      continue;
    }
    work->thread.join();
    work = works_.erase(work);
  }
}

}  // namespace

Result<void> relay(const std::string& session) {
  if (!is_session(session)) {
    return fail(ErrorKind::kBadInput, "\"" + session + "\" is not a session's name",
                "leave this command to `kernelpro optimize --station`, which runs it");
  }
  KP_ASSIGN(const auto address, socket_address(session));
  Fd socket = connected(address);
  if (!socket.valid()) {
    KP_TRY(start_resident(session));
    const double until = real_clock().now_s() + kToStart_s;
    while (!(socket = connected(address)).valid()) {
      if (real_clock().now_s() > until) return cannot("reach the resident process");
      ::usleep(5000);
    }
  }
  std::thread([out = socket.get()] {
    pass_all_on(STDIN_FILENO, out);
    ::shutdown(out, SHUT_RDWR);
  }).detach();
  pass_all_on(socket.get(), STDOUT_FILENO);
  return {};
}

Result<void> reside(const std::string& session, StationMaker maker) {
  if (!is_session(session)) {
    return fail(ErrorKind::kBadInput, "\"" + session + "\" is not a session's name",
                "leave this command to `kernelpro station --stdio`, which runs it");
  }
  KP_ASSIGN(const auto address, socket_address(session));
  Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket.valid()) return cannot("make a socket");
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    // Another resident of the session, or what a killed one has left.
    if (errno != EADDRINUSE || connected(address).valid()) return cannot("name a socket");
    ::unlink(address.sun_path);
    if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
      return cannot("name a socket");
    }
  }
  if (::listen(socket.get(), 4) != 0) return cannot("listen on a socket");
  Resident(std::move(socket), std::move(maker)).run();
  ::unlink(address.sun_path);
  return {};
}

}  // namespace kernelpro
