// SPDX-License-Identifier: Apache-2.0
#include "cli/live.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <cstring>

#include "base/clock.h"
#include "base/files.h"
#include "base/json.h"
#include "base/state_dir.h"
#include "base/text.h"
#include "serve/runs/runs.h"

extern char** environ;

namespace kernelpro {

namespace {

constexpr double kStartSeconds = 60;  // until a server has printed its link, on a busy machine

std::string notice_path(const std::string& runs) {
  return join(state_dir(), "serve-" + run_address(runs) + ".json");
}

// Only its owner may read it.
void write_private(const std::string& path, const std::string& text) {
  const Fd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!fd.valid() || ::fchmod(fd.get(), 0600) != 0) return;
  if (::write(fd.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
    ::unlink(path.c_str());
  }
}

std::optional<LiveServer> noticed(const std::string& runs) {
  const auto text = read_file(notice_path(runs), 1 << 16);
  const Json json = text ? parse_json(*text).value_or(Json()) : Json();
  if (!json.is_object()) return std::nullopt;
  const JsonReader read(json);
  const std::string process = "/proc/" + std::to_string(read.integer("pid", 0));
  // Its number may have passed to another program since.
  const Fd fd(::open((process + "/cmdline").c_str(), O_RDONLY | O_CLOEXEC));
  char words[256] = {};
  const ssize_t n = fd.valid() ? ::read(fd.get(), words, sizeof words) : 0;
  const std::string_view line(words, n > 0 ? static_cast<std::size_t>(n) : 0);
  if (line.find(std::string_view("kernelpro\0serve\0", 16)) == std::string_view::npos) {
    return std::nullopt;
  }
  return LiveServer{read.text("url", ""), read.text("token", "")};
}

// A process of its own session, which outlives this one. `out`: its standard output; -1: none.
int start_detached(const std::vector<std::string>& words, int out) {
  std::vector<char*> argv;
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDWR, 0);
  posix_spawn_file_actions_adddup2(&files, out < 0 ? 0 : out, 1);
  posix_spawn_file_actions_adddup2(&files, 0, 2);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t defaults;
  ::sigemptyset(&defaults);
  for (const int signal : {SIGINT, SIGTERM}) ::sigaddset(&defaults, signal);
  posix_spawnattr_setsigdefault(&attributes, &defaults);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGDEF);
  pid_t pid = 0;
  const int code = ::posix_spawnp(&pid, argv[0], &files, &attributes, argv.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  posix_spawnattr_destroy(&attributes);
  return code;
}

// Reads until the line with the link; "" when the process ends or nothing comes in time.
std::string read_link(int fd) {
  std::string text;
  const double until = real_clock().now_s() + kStartSeconds;
  for (double left = kStartSeconds; left > 0; left = until - real_clock().now_s()) {
    pollfd polled{fd, POLLIN, 0};
    if (::poll(&polled, 1, static_cast<int>(left * 1000) + 1) <= 0) continue;
    char bytes[1024];
    const ssize_t n = ::read(fd, bytes, sizeof bytes);
    if (n <= 0) return "";
    text.append(bytes, static_cast<std::size_t>(n));
    const std::size_t at = text.find("page: ");
    const std::size_t end = at == std::string::npos ? at : text.find('\n', at);
    if (end != std::string::npos) return text.substr(at + 6, end - at - 6);
  }
  return "";
}

}  // namespace

std::string live_link(const LiveServer& server, const std::string& run) {
  return server.url + "/#/" + (run.empty() ? "" : "run/" + run_address(run)) +
         (server.token.empty() ? "" : "?token=" + server.token);
}

LiveNotice::LiveNotice(const std::string& runs, const LiveServer& server)
    : path_(notice_path(runs)) {
  if (!make_dirs(dirname(path_))) return;
  write_private(path_, dump_json({{"pid", ::getpid()},
                                  {"url", server.url},
                                  {"token", server.token},
                                  {"runs", absolute(runs)}}));
}

LiveNotice::~LiveNotice() { ::unlink(path_.c_str()); }

Result<LiveServer> find_live_server(const std::string& runs) {
  if (auto server = noticed(runs)) return std::move(*server);
  KP_TRY(make_dirs(runs));
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    return fail(ErrorKind::kEnvironment, std::string("cannot make a pipe: ") + std::strerror(errno),
                "leave --open out");
  }
  const Fd from(ends[0]);
  Fd to(ends[1]);
  const int code = start_detached({join(executable_dir(), "kernelpro"), "serve", "--runs",
                                   absolute(runs), "--port", "0", "--unused", "1800"},
                                  to.get());
  to.reset();
  const std::string link = code == 0 ? read_link(from.get()) : "";
  auto server = link.empty() ? std::nullopt : noticed(runs);
  if (!server) {
    return fail(ErrorKind::kEnvironment, "the server of the live page does not start",
                "see why with: kernelpro serve --port 0 --runs " + runs);
  }
  return std::move(*server);
}

void show_link(const std::string& link) {
  const bool desktop =
      std::getenv("DISPLAY") != nullptr || std::getenv("WAYLAND_DISPLAY") != nullptr;
  if (desktop && !find_program("xdg-open").empty()) start_detached({"xdg-open", link}, -1);
}

}  // namespace kernelpro
