// SPDX-License-Identifier: Apache-2.0
// Requests as bytes; then a real `kernelpro serve` process and real sockets.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "base/testing.h"
#include "serve/http/connection.h"
#include "serve/http/message.h"
#include "serve/mcp/frames.h"
#include "serve/mcp/testing/client.h"

namespace kernelpro {
namespace {

using testing::connect_to;
using testing::http_exchange;
using testing::ServerProcess;

int status_of(const std::string& head) {
  const auto read = read_head(head);
  const auto* fault = std::get_if<HttpFault>(&read);
  return fault == nullptr ? 200 : fault->status;
}

TEST(HttpMessage, ReadsAndRefuses) {
  const auto read = read_head(
      "POST /mcp?x=1 HTTP/1.1\r\nHost: localhost:1\r\nContent-Length: 12\r\nX-A:  b \r\n\r\n");
  const auto& head = std::get<HttpRequestHead>(read);
  EXPECT_EQ(head.method, "POST");
  EXPECT_EQ(head.path, "/mcp");
  EXPECT_EQ(head.content_length, 12u);
  EXPECT_EQ(head.header("x-a"), "b");
  EXPECT_TRUE(head.keep_alive);
  EXPECT_EQ(status_of("GET / HTTP/1.0\r\n\r\n"), 200);
  EXPECT_EQ(status_of("GET / HTTP/2\r\n\r\n"), 505);
  EXPECT_EQ(status_of("GET http://x/ HTTP/1.1\r\n\r\n"), 400);
  EXPECT_EQ(status_of("GET  / HTTP/1.1\r\n\r\n"), 400);
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\nA : b\r\n\r\n"), 400);
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\nA: b\r\n folded\r\n\r\n"), 400);
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"), 400);
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\nA: b\nC: d\r\n\r\n"), 400);
  EXPECT_EQ(status_of("POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n"), 400);
  EXPECT_EQ(status_of("POST / HTTP/1.1\r\nContent-Length: 1, 1\r\n\r\n"), 400);
  EXPECT_EQ(status_of("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"), 501);
  EXPECT_EQ(host_name("LocalHost:80"), "localhost");
  EXPECT_EQ(host_name("[::1]:80"), "[::1]");
  EXPECT_TRUE(is_address("192.168.0.1"));
  EXPECT_TRUE(is_address("[fe80::1]"));
  EXPECT_FALSE(is_address("192.168.0.1.evil.org"));
  EXPECT_TRUE(same_secret("token", "token"));
  EXPECT_FALSE(same_secret("token", "tokem"));
  EXPECT_FALSE(same_secret("tokentoken", "token"));
  EXPECT_FALSE(same_secret("", "token"));
}

TEST(HttpConnection, SlowClientsTimeOut) {
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  const Fd client(ends[1]);
  std::atomic<bool> stopping{false};
  HttpConnection connection(Fd(ends[0]), stopping, 0.3);
  const auto status = [&](const auto& read) { return std::get<HttpFault>(read).status; };
  EXPECT_EQ(status(connection.head(0.1, 0.1)), 0);  // nothing came
  const std::string half = "POST /mcp HTTP/1.1\r\nHo";
  ASSERT_EQ(::write(client.get(), half.data(), half.size()), static_cast<ssize_t>(half.size()));
  EXPECT_EQ(status(connection.head(1, 0.2)), 408);
  std::string body;
  EXPECT_FALSE(connection.body(100, 0.2, &body));
  // Sending to a client that does not read times out; without a limit the call would not return.
  EXPECT_FALSE(connection.send(std::string(64 << 20, 'x')));
  stopping = true;
  EXPECT_EQ(status(connection.head(60, 60)), 0);
}

std::string tasks() { return std::string(KERNELPRO_SOURCE_DIR) + "/tests/tasks"; }

class HttpServed : public ::testing::Test {
 protected:
  HttpServed()
      : server_(dir_.path(), {"serve", tasks(), "--port", "0", "--target", "cpu", "--no-record"},
                {"KERNELPRO_TOKEN=secret-of-the-test"}) {
    const std::string line = server_.line(20).value_or("");
    const std::size_t colon = line.rfind(':');
    port_ = colon == std::string::npos ? 0 : std::atoi(line.c_str() + colon + 1);
    EXPECT_TRUE(contains(line, "http://127.0.0.1:")) << line;
  }

  struct Request {
    std::string method = "POST";
    std::string path = "/mcp";
    std::string host = "127.0.0.1";
    std::string token = "secret-of-the-test";
    std::string type = "application/json";
    std::string more = "";  // header lines
    std::string body = "";
  };
  std::string ask(const Request& request) {
    std::string text = request.method + " " + request.path + " HTTP/1.1\r\nHost: " + request.host +
                       "\r\nConnection: close\r\nContent-Type: " + request.type +
                       "\r\nContent-Length: " + std::to_string(request.body.size()) + "\r\n";
    if (!request.token.empty()) text += "Authorization: Bearer " + request.token + "\r\n";
    return http_exchange(port_, text + request.more + "\r\n" + request.body);
  }
  int status(const Request& request) { return status_line(ask(request)); }
  static int status_line(const std::string& text) {
    return text.size() > 12 ? std::atoi(text.c_str() + 9) : 0;
  }
  static std::string message(int id, const std::string& method, const Json& params) {
    return dump_json({{"jsonrpc", "2.0"}, {"id", id}, {"method", method}, {"params", params}});
  }
  // The header line of a new session.
  std::string session() {
    const std::string text =
        ask({.body = message(1, "initialize", {{"protocolVersion", "2025-06-18"}})});
    EXPECT_EQ(status_line(text), 200) << text;
    for (const std::string& line : split(text, '\n')) {
      if (line.starts_with("Mcp-Session-Id: ")) return std::string(trim(line)) + "\r\n";
    }
    ADD_FAILURE() << text;
    return "";
  }

  TempDir dir_;
  ServerProcess server_;
  int port_ = 0;
};

// Whoever holds the token may run kernels, which are confined, and read tasks: nothing else.
TEST_F(HttpServed, ClientsElsewhereReadNoOtherFilesAndRunNoPrograms) {
  const std::string session_line = session();
  const auto call = [&](int id, const std::string& tool, const Json& arguments) {
    return ask({.more = session_line,
                .body = message(id, "tools/call", {{"name", tool}, {"arguments", arguments}})});
  };
  const std::string report = std::string(KERNELPRO_SOURCE_DIR) +
                             "/src/profile/import/testdata/fuzz_ncu_details/details.txt";
  for (const std::string& path : {report, std::string("../../README.md")}) {
    const std::string read = call(2, "diagnose_file", {{"path", path}});
    EXPECT_TRUE(contains(read, "only files below the folders of this server")) << read;
  }
  const std::string program = call(3, "diagnose_program", {{"command", {"/bin/true"}}});
  EXPECT_TRUE(contains(program, "there is no tool diagnose_program")) << program;
  const std::string listed =
      ask({.more = session_line, .body = message(4, "tools/list", Json::object())});
  EXPECT_TRUE(contains(listed, "diagnose_file") && !contains(listed, "diagnose_program"));
}

TEST_F(HttpServed, RefusesStrangers) {
  const std::string ping = message(1, "ping", Json::object());
  EXPECT_EQ(status({.token = "", .body = ping}), 401);
  EXPECT_EQ(status({.token = "secret-of-the-tesT", .body = ping}), 401);
  EXPECT_EQ(status({.host = "evil.example", .body = ping}), 421);
  EXPECT_EQ(status({.host = "127.0.0.1.evil.example:80", .body = ping}), 421);
  EXPECT_EQ(status({.more = "Origin: http://evil.example\r\n", .body = ping}), 403);
  EXPECT_EQ(status({.more = "Origin: null\r\n", .body = ping}), 403);
  EXPECT_EQ(status({.method = "GET"}), 405);
  EXPECT_EQ(status({.method = "PUT", .body = ping}), 405);
  EXPECT_EQ(status({.path = "/", .body = ping}), 404);
  EXPECT_EQ(status({.type = "text/plain", .body = ping}), 415);
  EXPECT_EQ(status({.body = ping}), 400);  // no session
  EXPECT_EQ(status({.body = "garbage"}), 400);
  EXPECT_EQ(status({.more = "Mcp-Session-Id: none\r\n", .body = ping}), 404);
  EXPECT_EQ(status({.more = "MCP-Protocol-Version: 1999-01-01\r\n", .body = ping}), 400);
  EXPECT_EQ(status({.method = "DELETE", .more = "Mcp-Session-Id: none\r\n"}), 404);
  const std::string head =
      "POST /mcp HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
      "Content-Type: application/json\r\n"
      "Authorization: Bearer secret-of-the-test\r\n";
  EXPECT_EQ(status_line(http_exchange(port_, head + "\r\n")), 411);
  EXPECT_EQ(status_line(http_exchange(port_, head + "Content-Length: " +
                                                 std::to_string(kMaxFrameBytes + 1) + "\r\n\r\n")),
            413);
  EXPECT_EQ(status_line(http_exchange(port_, head + "X: " + std::string(20000, 'x'))), 431);
  EXPECT_EQ(status_line(http_exchange(port_, "\x16\x03\x01 TLS hello\r\n\r\n")), 400);
  EXPECT_EQ(status_line(ask({.body = message(1, "initialize", Json::object())})), 200);
}

TEST_F(HttpServed, ASessionFromItsBeginningToItsEnd) {
  const std::string id = session();
  const auto post = [&](const std::string& body) { return ask({.more = id, .body = body}); };
  EXPECT_EQ(
      status_line(post(dump_json({{"jsonrpc", "2.0"}, {"method", "notifications/initialized"}}))),
      202);
  EXPECT_TRUE(contains(post(message(2, "tools/list", Json::object())), "\"evaluate\""));
  const std::string source =
      "#include \"task.h\"\nextern \"C\" void launch(const Args& args) {\n"
      "  for (int i = 0; i < N; ++i) args.y[i] = args.z[i] + 2 * args.x[i];\n}\n";
  const std::string answer = post(message(3, "tools/call",
                                          {{"name", "evaluate"},
                                           {"arguments", {{"task", "axpy"}, {"source", source}}},
                                           {"_meta", {{"progressToken", "p"}}}}));
  EXPECT_TRUE(contains(answer, "text/event-stream")) << answer;
  EXPECT_TRUE(contains(answer, "notifications/progress")) << answer;
  EXPECT_TRUE(contains(answer, "\"outcome\":\"correct\"")) << answer;
  EXPECT_TRUE(answer.ends_with("\r\n0\r\n\r\n"));
  // Two sessions see the same run.
  const std::string other = session();
  EXPECT_NE(id, other);
  EXPECT_TRUE(contains(ask({.more = other, .body = message(4, "tools/call", {{"name", "best"}})}),
                       "Candidate"));
  EXPECT_EQ(status({.method = "DELETE", .more = id}), 204);
  EXPECT_EQ(status_line(post(message(5, "ping", Json::object()))), 404);
}

TEST_F(HttpServed, ACancelledCallEndsItsStream) {
  const std::string id = session();
  const std::string endless =
      "#include \"task.h\"\nextern \"C\" void launch(const Args& args) {\n"
      "  volatile int on = 1;\n  while (on) {}\n  args.y[0] = 0;\n}\n";
  std::string streamed;
  std::thread waiting([&] {
    streamed = ask({.more = id,
                    .body = message(7, "tools/call",
                                    {{"name", "evaluate"},
                                     {"arguments", {{"task", "axpy"}, {"source", endless}}},
                                     {"_meta", {{"progressToken", 7}}}})});
  });
  ::sleep(3);
  const Json cancel = {
      {"jsonrpc", "2.0"}, {"method", "notifications/cancelled"}, {"params", {{"requestId", 7}}}};
  EXPECT_EQ(status({.more = id, .body = dump_json(cancel)}), 202);
  waiting.join();
  EXPECT_TRUE(contains(streamed, "notifications/progress")) << streamed;
  EXPECT_FALSE(contains(streamed, "\"result\"")) << streamed;
  EXPECT_TRUE(streamed.ends_with("\r\n0\r\n\r\n"));
}

// Three hundred clients without a token, one byte at a time and never a whole head.
TEST_F(HttpServed, SlowStrangersKeepNobodyOut) {
  constexpr std::size_t kStrangers = 300;
  const std::string id = session();
  std::atomic<bool> over{false};
  std::atomic<std::size_t> connected{0}, dropped{0};
  std::thread strangers([&] {
    std::vector<Fd> sockets;
    const std::string head = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nX-Filler: ";
    for (std::size_t step = 0; !over; ++step) {
      // The first round connects them all; those that are dropped come back.
      while (sockets.size() < kStrangers && !over) {
        sockets.push_back(connect_to(port_));
        if (sockets.back().valid()) ++connected;
      }
      const char byte = step < head.size() ? head[step] : 'x';
      const std::size_t before = sockets.size();
      std::erase_if(sockets, [&](const Fd& socket) {
        return !socket.valid() || ::send(socket.get(), &byte, 1, MSG_NOSIGNAL | MSG_DONTWAIT) != 1;
      });
      dropped += before - sockets.size();
      ::usleep(200000);
    }
  });
  EXPECT_TRUE(eventually([&] { return connected >= 2 * kStrangers; }));
  const double begun = real_clock().now_s();
  for (int i = 2; i < 12; ++i) {
    const std::string text = ask({.more = id, .body = message(i, "ping", Json::object())});
    EXPECT_EQ(status_line(text), 200) << i << ": " << text;
  }
  EXPECT_EQ(status({.token = "", .body = message(1, "ping", Json::object())}), 401);
  // Behind three hundred that each keep their place for five seconds it would take minutes.
  EXPECT_LT(real_clock().now_s() - begun, 60);
  over = true;
  strangers.join();
  EXPECT_GE(dropped, kStrangers);
  ASSERT_EQ(::kill(server_.pid(), SIGTERM), 0);
  EXPECT_EQ(server_.wait(20), 0);
}

TEST_F(HttpServed, EndsWithASignal) {
  session();
  ASSERT_EQ(::kill(server_.pid(), SIGTERM), 0);
  EXPECT_EQ(server_.wait(5), 0);
}

TEST_F(HttpServed, SaysWhatIsWrongAtTheStart) {
  const auto start = [&](const std::vector<std::string>& arguments, std::string* said) {
    const TempDir dir;
    ServerProcess second(dir.path(), arguments);
    const auto status = second.wait(10);
    *said = read_file(join(dir.path(), "stderr")).value_or("");
    return status;
  };
  std::string said;
  EXPECT_EQ(start({"serve", "--port", std::to_string(port_)}, &said), 3);
  EXPECT_TRUE(contains(said, "is taken by another program")) << said;
  EXPECT_EQ(start({"serve", "--host", "0.0.0.0", "--port", "0"}, &said), 2);
  EXPECT_TRUE(contains(said, "--allow-remote")) << said;
  EXPECT_EQ(start({"serve", "no-such-folder"}, &said), 2);
  // A generated token is shown once and differs between starts.
  std::string tokens[2];
  for (std::string& token : tokens) {
    const TempDir dir;
    ServerProcess own(dir.path(), {"serve", "--port", "0"});
    own.line(10);
    token = own.line(10).value_or("");
    EXPECT_TRUE(token.starts_with("token: ") && token.size() == 7 + 64) << token;
    ::kill(own.pid(), SIGTERM);
    EXPECT_EQ(own.wait(5), 0);
  }
  EXPECT_NE(tokens[0], tokens[1]);
}

}  // namespace
}  // namespace kernelpro
