// SPDX-License-Identifier: Apache-2.0
// Runs bench/model/server.py as a child process, for tests and bench_model. One thread.
#pragma once

#include <string>
#include <vector>

#include "base/files.h"
#include "base/json.h"
#include "base/process/subprocess.h"
#include "write/model/http.h"

namespace kernelpro {

class LocalServer {
 public:
  // Fails with kEnvironment when python3 is missing. `source_dir`: the project's folder.
  static Result<LocalServer> start(const std::string& source_dir) {
    const std::string python = find_program("python3");
    if (python.empty()) {
      return fail(ErrorKind::kEnvironment, "there is no python3", "install it (scripts/setup)");
    }
    Command command;
    command.argv = {python, join(source_dir, "bench/model/server.py")};
    command.limits.wall_seconds = 300;
    KP_ASSIGN(Child child, Child::start(command));
    LocalServer server;
    server.child_ = std::move(child);
    const auto port = server.child_.receive(20);
    if (!port) {
      return fail(ErrorKind::kEnvironment, "the server did not start: " + server.child_.output(),
                  "run python3 bench/model/server.py --port 8080 to see why");
    }
    server.url_ = "http://127.0.0.1:" + port->bytes;
    return server;
  }

  const std::string& url() const { return url_; }
  // The base URL at which requests with `id` get the acts in `acts`, one after the other.
  std::string base(const std::string& id, const std::string& acts) const {
    return url_ + "/t/" + id + "/" + acts;
  }
  // Rules for the act "script" of requests with `id`; server.py documents them.
  void script(const std::string& id, const Json& rules) const { ask("/script/" + id, rules); }
  // The server's answer at /stats, /last/ID or /gaps/ID; null when it does not answer.
  Json ask(const std::string& path, const Json& body = {}) const {
    struct Text : HttpSink {
      std::string all;
      void bytes(const HttpHead&, std::string_view part) override { all += part; }
    } text;
    const auto pool = HttpPool::make();
    if (!pool) return {};
    HttpRequest request;
    request.url = url_ + path;
    request.direct = true;
    if (!body.is_null()) request.body = dump_json(body);
    (*pool)->post(request, text);
    return parse_json(text.all).value_or(Json());
  }

 private:
  Child child_;
  std::string url_;
};

}  // namespace kernelpro
