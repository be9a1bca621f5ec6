// SPDX-License-Identifier: Apache-2.0
// A real `kernelpro serve` process, real sockets and real stores: recorded runs, a run that this
// test writes, and one that a real process works on.
#include "serve/web/web.h"

#include <gtest/gtest.h>

#include "base/testing.h"
#include "run/store/testing.h"
#include "serve/mcp/testing/client.h"

namespace kernelpro {
namespace {

using testing::connect_to;
using testing::http_exchange;
using testing::ServerProcess;

std::string recording() {
  return std::string(KERNELPRO_SOURCE_DIR) + "/results/exchange/softmax.jsonl";
}

class LivePage : public ::testing::Test {
 protected:
  LivePage() {
    EXPECT_TRUE(make_dirs(runs()));
    const auto recorded = Store::open(recording(), Store::Mode::kRead);
    EXPECT_TRUE(recorded && (*recorded)->copy_to(join(runs(), "softmax")));
    server_ = std::make_unique<ServerProcess>(
        dir_.path(),
        std::vector<std::string>{"serve", ".", "--runs", runs(), "--port", "0", "--no-record"},
        std::vector<std::string>{"KERNELPRO_TOKEN=secret", "KERNELPRO_STATE=" + dir_.path()});
    const std::string line = server_->line(60).value_or("");
    const std::size_t colon = line.rfind(':');
    port_ = colon == std::string::npos ? 0 : std::atoi(line.c_str() + colon + 1);
  }
  std::string runs() const { return join(dir_.path(), "runs"); }
  std::string address(const std::string& name) const { return run_address(join(runs(), name)); }

  std::string head(const std::string& method, const std::string& path, const std::string& more) {
    return method + " " + path + " HTTP/1.1\r\nHost: 127.0.0.1:" + std::to_string(port_) +
           "\r\nConnection: close\r\n" + more + "\r\n";
  }
  std::string ask(const std::string& path, const std::string& method = "GET",
                  const std::string& more = "Authorization: Bearer secret\r\n") {
    return http_exchange(port_, head(method, path, more));
  }
  static int status(const std::string& answer) {
    return answer.size() > 12 ? std::atoi(answer.c_str() + 9) : 0;
  }
  Json json(const std::string& path, const std::string& method = "GET") {
    const std::string answer = ask(path, method);
    const std::size_t at = answer.find("\r\n\r\n");
    return at == std::string::npos ? Json() : parse_json(answer.substr(at + 4)).value_or(Json());
  }

  // The stream of a run's events, from its first evaluation on.
  Fd follow(const std::string& id) {
    Fd socket = connect_to(port_);
    const std::string request =
        head("GET", "/events?run=" + id + "&after=0", "Authorization: Bearer secret\r\n");
    EXPECT_EQ(::send(socket.get(), request.data(), request.size(), 0),
              static_cast<ssize_t>(request.size()));
    return socket;
  }

  TempDir dir_;
  std::unique_ptr<ServerProcess> server_;
  int port_ = 0;
};

TEST_F(LivePage, ItsFilesNeedNoTokenItsDataDo) {
  const std::string page = ask("/", "GET", "");
  EXPECT_EQ(status(page), 200);
  EXPECT_TRUE(contains(page, "Content-Security-Policy: default-src 'none'; script-src 'self'"));
  EXPECT_FALSE(contains(page, "<script>")) << "scripts are files";
  EXPECT_EQ(status(ask("/page.js", "GET", "")), 200);
  EXPECT_EQ(status(ask("/page.css", "GET", "")), 200);
  for (const std::string path : {"/runs", "/events", "/run/x", "/suite/x", "/page.html"}) {
    EXPECT_EQ(status(ask(path, "GET", "")), 401) << path;
    EXPECT_EQ(status(ask(path, "GET", "Authorization: Bearer wrong\r\n")), 401) << path;
  }
  const std::string id = address("softmax");
  EXPECT_EQ(status(ask("/run/" + id + "/stop", "POST", "")), 401);
  // Another site's page, and another name for this machine.
  EXPECT_EQ(status(ask("/run/" + id + "/stop", "POST",
                       "Authorization: Bearer secret\r\nOrigin: http://evil.example\r\n")),
            403);
  EXPECT_EQ(status(http_exchange(port_,
                                 "GET / HTTP/1.1\r\nHost: evil.example\r\n"
                                 "Connection: close\r\n\r\n")),
            421);
}

TEST_F(LivePage, ARunAsData) {
  const Json list = json("/runs");
  ASSERT_EQ(list["runs"].size(), 1u) << list;
  const std::string id = list["runs"][0]["id"];
  EXPECT_EQ(id, address("softmax"));
  EXPECT_EQ(list["runs"][0]["name"], "softmax");
  EXPECT_EQ(list["runs"][0]["state"], "finished");
  const Json run = json("/run/" + id);
  EXPECT_EQ(run["rows"].size(), 5u);
  EXPECT_EQ(run["head"]["result"]["best"], 4);
  EXPECT_TRUE(contains(run["head"]["result"]["verdict"].get<std::string>(), "faster"));
  EXPECT_GT(run["head"]["work"]["bytes"], 2e9);
  // In brief it says the same as in whole.
  const Json same = json("/runs")["runs"][0];
  EXPECT_EQ(same["speedup"], run["head"]["result"]["speedup"]);
  const Json candidate = json("/run/" + id + "/candidate/4");
  EXPECT_TRUE(contains(candidate["source"].get<std::string>(), "__global__"));
  EXPECT_FALSE(candidate["writing"]["prompt"].get<std::string>().empty());
  EXPECT_TRUE(candidate.contains("tools"));
  EXPECT_TRUE(contains(ask("/run/" + id + "/report"), "<!doctype html>"));
  EXPECT_TRUE(json("/run/" + id + "/calls").is_array());
}

TEST_F(LivePage, WhatIsNotThere) {
  const std::string id = address("softmax");
  for (const std::string& path :
       {"/run/" + id + "/candidate/99", "/run/" + id + "/candidate/0",
        "/run/" + id + "/candidate/x", "/run/" + id + "/other", std::string("/run/0123456789ab"),
        std::string("/run/../../etc/passwd"), std::string("/run/%2e%2e"), std::string("/run/"),
        std::string("/suite/0123456789ab")}) {
    const std::string answer = ask(path);
    EXPECT_EQ(status(answer), 404) << path << answer;
    EXPECT_TRUE(contains(answer, "\"next\"")) << answer;
  }
  EXPECT_EQ(status(ask("/run/" + id + "/stop")), 404) << "only a POST acts";
  EXPECT_EQ(status(ask("/run/" + id + "/stop", "POST")), 409) << "nothing runs";
}

// Reads a stream until it holds the text.
bool read_until(int socket, const std::string& text, std::string* all) {
  return eventually([&] {
    pollfd polled{socket, POLLIN, 0};
    if (::poll(&polled, 1, 100) > 0) {
      char bytes[65536];
      const ssize_t n = ::recv(socket, bytes, sizeof bytes, 0);
      if (n > 0) all->append(bytes, static_cast<std::size_t>(n));
    }
    return contains(*all, text);
  });
}

TEST_F(LivePage, AnEventFollowsEachCommit) {
  const std::string id = address("mine");
  const Fd socket = follow(id);
  std::string all;
  ASSERT_TRUE(read_until(socket.get(), "text/event-stream", &all));
  // The page was opened before the run began.
  auto store = storing::create(join(runs(), "mine"));
  ASSERT_NE(store, nullptr);
  ASSERT_TRUE(read_until(socket.get(), "\"state\":\"running\"", &all)) << all;
  for (int i = 1; i <= 3; ++i) {
    const auto ids = store->add({storing::candidate(i)});
    ASSERT_TRUE(ids);
    ASSERT_TRUE(store->finish(ids->at(0), storing::correct(100 - i), {}, {}, i));
    ASSERT_TRUE(read_until(socket.get(), "\"order\":" + std::to_string(i), &all)) << all;
  }
  EXPECT_EQ(all.find("\"order\":1,"), all.rfind("\"order\":1,")) << "a row is sent once";
  // This process holds the run, but it is no `kernelpro optimize`: it is left alone.
  const std::string refused = ask("/run/" + id + "/stop", "POST");
  EXPECT_EQ(status(refused), 409) << refused;
  EXPECT_EQ(status(ask("/run/" + id + "/resume", "POST")), 409);
  store.reset();
  EXPECT_TRUE(read_until(socket.get(), "\"state\":\"stopped\"", &all)) << all;
}

// The softmax example with few rows: an evaluation is short, and its knobs have so many values that
// the run does not end by itself.
std::string long_task(const std::string& folder) {
  const std::string example = std::string(KERNELPRO_SOURCE_DIR) + "/examples/softmax";
  const std::string task = join(folder, "task");
  EXPECT_TRUE(make_dirs(task));
  for (const std::string& name : list_dir(example)) {
    std::string text = read_file(join(example, name)).value_or("");
    const std::size_t at = text.find("ROWS = 2048");
    if (at != std::string::npos) text.replace(at, 11, "ROWS = 64");
    EXPECT_TRUE(write_file(join(task, name), text));
  }
  return task;
}

TEST_F(LivePage, StopsAndResumes) {
  const std::string id = address("long");
  const Fd events = follow(id);
  ServerProcess runner(dir_.path(), {"optimize", long_task(dir_.path()), "--target", "cpu", "--run",
                                     join(runs(), "long"), "--no-record", "--near-ceiling", "0",
                                     "--evaluations", "500", "--seconds", "600", "--json"});
  std::string all;
  ASSERT_TRUE(read_until(events.get(), "\"order\":2,", &all))
      << all << read_file(join(dir_.path(), "stderr")).value_or("");
  EXPECT_EQ(json("/run/" + id)["head"]["state"], "running");
  EXPECT_EQ(status(ask("/run/" + id + "/resume", "POST")), 409);
  EXPECT_EQ(status(ask("/run/" + id + "/stop", "POST")), 200);
  EXPECT_EQ(runner.wait(120), 130);
  EXPECT_TRUE(read_until(events.get(), "\"state\":\"stopped\"", &all)) << all;
  const std::size_t before = json("/run/" + id)["rows"].size();
  EXPECT_EQ(status(ask("/run/" + id + "/resume", "POST")), 200);
  EXPECT_TRUE(read_until(events.get(), "\"order\":" + std::to_string(before + 1) + ",", &all))
      << read_file(join(runs(), "long/resume.log")).value_or("");
  all.clear();  // it was stopped before, too
  EXPECT_EQ(status(ask("/run/" + id + "/stop", "POST")), 200);
  EXPECT_TRUE(read_until(events.get(), "\"state\":\"stopped\"", &all)) << all;
}

}  // namespace
}  // namespace kernelpro
