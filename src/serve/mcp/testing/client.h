// SPDX-License-Identifier: Apache-2.0
// For tests and bench_mcp: a client of a real `kernelpro mcp` or `kernelpro serve` process that can
// send raw bytes. One thread.
#pragma once

#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/files.h"
#include "base/json.h"
#include "base/text.h"

namespace kernelpro::testing {

class ServerProcess {
 public:
  // `arguments` follow the program's name. The process runs in `folder`; its standard error goes to
  // FOLDER/stderr. `env`: "NAME=value".
  ServerProcess(const std::string& folder, const std::vector<std::string>& arguments,
                const std::vector<std::string>& env = {}) {
    int to[2], from[2];
    if (::pipe2(to, O_CLOEXEC) != 0 || ::pipe2(from, O_CLOEXEC) != 0) return;
    in_ = Fd(to[1]);
    out_ = Fd(from[0]);
    std::vector<std::string> words = {join(executable_dir(), "kernelpro")};
    words.insert(words.end(), arguments.begin(), arguments.end());
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    const std::string log = join(folder, "stderr");
    pid_ = ::fork();
    if (pid_ == 0) {
      ::dup2(to[0], 0);
      ::dup2(from[1], 1);
      const int err = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
      ::dup2(err, 2);
      for (const std::string& each : env) ::putenv(const_cast<char*>(each.c_str()));
      if (::chdir(folder.c_str()) != 0) ::_exit(126);
      ::execv(argv[0], argv.data());
      ::_exit(127);
    }
    ::close(to[0]);
    ::close(from[1]);
  }
  ~ServerProcess() {
    close_input();
    if (pid_ > 0) ::kill(pid_, SIGTERM);
    if (pid_ > 0 && !wait(10)) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
    }
  }
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;

  pid_t pid() const { return pid_; }
  void raw(const std::string& bytes) {
    std::string_view rest = bytes;
    while (!rest.empty()) {
      const ssize_t n = ::write(in_.get(), rest.data(), rest.size());
      if (n <= 0) return;
      rest.remove_prefix(static_cast<std::size_t>(n));
    }
  }
  void send(const Json& message) { raw(dump_json(message) + "\n"); }
  // The next line; nullopt: timeout or end of output.
  std::optional<std::string> line(double timeout_s) {
    const double end = real_clock().now_s() + timeout_s;
    for (;;) {
      const std::size_t at = buffer_.find('\n');
      if (at != std::string::npos) {
        std::string one = buffer_.substr(0, at);
        buffer_.erase(0, at + 1);
        return one;
      }
      const double left = end - real_clock().now_s();
      pollfd polled{out_.get(), POLLIN, 0};
      if (left <= 0 || ::poll(&polled, 1, static_cast<int>(left * 1000) + 1) <= 0) {
        return std::nullopt;
      }
      char bytes[65536];
      const ssize_t n = ::read(out_.get(), bytes, sizeof bytes);
      if (n <= 0) return std::nullopt;
      buffer_.append(bytes, static_cast<std::size_t>(n));
    }
  }
  // The next message; null when there is none or the line is not JSON.
  Json receive(double timeout_s = 20) {
    const auto text = line(timeout_s);
    return text ? parse_json(*text).value_or(Json()) : Json();
  }
  // The answer to `id`; earlier messages go to `others`.
  Json answer(const Json& id, double timeout_s = 60, std::vector<Json>* others = nullptr) {
    const double end = real_clock().now_s() + timeout_s;
    while (real_clock().now_s() < end) {
      Json message = receive(end - real_clock().now_s());
      if (message.is_null()) return message;
      if (message.contains("id") && message["id"] == id) return message;
      if (others != nullptr) others->push_back(std::move(message));
    }
    return {};
  }
  Json ask(int id, const std::string& method, const Json& params = Json::object(),
           double timeout_s = 60) {
    send({{"jsonrpc", "2.0"}, {"id", id}, {"method", method}, {"params", params}});
    return answer(id, timeout_s);
  }
  void start_call(int id, const std::string& tool, const Json& arguments, bool progress = false) {
    Json params = {{"name", tool}, {"arguments", arguments}};
    if (progress) params["_meta"] = {{"progressToken", id}};
    send({{"jsonrpc", "2.0"}, {"id", id}, {"method", "tools/call"}, {"params", params}});
  }
  Json call(int id, const std::string& tool, const Json& arguments, double timeout_s = 120) {
    start_call(id, tool, arguments);
    const Json message = answer(id, timeout_s);
    return message.contains("result") ? message["result"] : Json();
  }
  Json initialize(const std::string& version = "2025-06-18") {
    const Json answer = ask(1, "initialize",
                            {{"protocolVersion", version},
                             {"capabilities", Json::object()},
                             {"clientInfo", {{"name", "test"}, {"version", "1"}}}});
    send({{"jsonrpc", "2.0"}, {"method", "notifications/initialized"}});
    return answer;
  }
  void close_input() { in_.reset(); }
  // The exit status; 128 plus the signal number after a signal. nullopt: still running.
  std::optional<int> wait(double timeout_s) {
    const double end = real_clock().now_s() + timeout_s;
    while (pid_ > 0) {
      int status = 0;
      if (::waitpid(pid_, &status, WNOHANG) == pid_) {
        pid_ = -1;
        return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
      }
      if (real_clock().now_s() > end) return std::nullopt;
      ::usleep(10000);
    }
    return std::nullopt;
  }

 private:
  pid_t pid_ = -1;
  Fd in_;
  Fd out_;
  std::string buffer_;
};

// A connection to the server on this port; invalid if there is none.
inline Fd connect_to(int port) {
  Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
    socket.reset();
  return socket;
}

// Sends `bytes` to the server on this port; returns its reply up to the end of the connection.
inline std::string http_exchange(int port, const std::string& bytes, double timeout_s = 300) {
  const Fd socket = connect_to(port);
  if (!socket.valid()) return "";
  std::string_view rest = bytes;
  while (!rest.empty()) {
    const ssize_t n = ::send(socket.get(), rest.data(), rest.size(), MSG_NOSIGNAL);
    if (n <= 0) break;
    rest.remove_prefix(static_cast<std::size_t>(n));
  }
  std::string all;
  const double end = real_clock().now_s() + timeout_s;
  for (;;) {
    const double left = end - real_clock().now_s();
    pollfd polled{socket.get(), POLLIN, 0};
    if (left <= 0 || ::poll(&polled, 1, static_cast<int>(left * 1000) + 1) <= 0) return all;
    char buffer[65536];
    const ssize_t n = ::recv(socket.get(), buffer, sizeof buffer, 0);
    if (n <= 0) return all;
    all.append(buffer, static_cast<std::size_t>(n));
  }
}

}  // namespace kernelpro::testing
