// SPDX-License-Identifier: Apache-2.0
// Real `kernelpro mcp` processes, real kernels on the cpu target.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/process/processes.h"
#include "base/process/subprocess.h"
#include "base/testing.h"
#include "run/store/store.h"
#include "serve/mcp/frames.h"
#include "serve/mcp/session.h"
#include "serve/mcp/testing/client.h"
#include "serve/mcp/tools.h"

namespace kernelpro {
namespace {

using testing::ServerProcess;

const std::string kAxpy =
    "#include \"task.h\"\nextern \"C\" void launch(const Args& args) {\n"
    "  for (int i = 0; i < N; ++i) args.y[i] = BODY;\n}\n";
std::string axpy(const std::string& body) { return replace_all(kAxpy, "BODY", body); }
const std::string kEndless =
    "#include \"task.h\"\nextern \"C\" void launch(const Args& args) {\n"
    "  volatile int on = 1;\n  while (on) {}\n  args.y[0] = 0;\n}\n";

std::string tasks() { return std::string(KERNELPRO_SOURCE_DIR) + "/tests/tasks"; }

std::vector<std::string> mcp() { return {"mcp", tasks(), "--target", "cpu", "--no-record"}; }

int code_of(const Json& message) {
  return message.contains("error") ? message["error"]["code"].get<int>() : 0;
}

std::string text_of(const Json& result) {
  return result.contains("content") ? result["content"][0]["text"].get<std::string>() : "";
}

TEST(Stdio, NegotiatesAndListsItsTools) {
  const TempDir dir;
  for (const char* version : kProtocolVersions) {
    ServerProcess server(dir.path(), mcp());
    EXPECT_EQ(code_of(server.ask(7, "tools/list")), kRpcInvalidRequest);
    EXPECT_TRUE(server.ask(8, "ping").contains("result"));
    EXPECT_EQ(code_of(server.ask(9, "server/discover")), kRpcMethodNotFound);
    const Json hello = server.initialize(version);
    EXPECT_EQ(hello["result"]["protocolVersion"], version);
    EXPECT_EQ(hello["result"]["serverInfo"]["name"], "kernelpro");
    EXPECT_EQ(code_of(server.ask(1, "initialize")), kRpcInvalidRequest);
    const Json listed = server.ask(2, "tools/list");
    std::set<std::string> names;
    for (const Json& tool : listed["result"]["tools"]) {
      names.insert(tool["name"].get<std::string>());
      EXPECT_EQ(tool["inputSchema"]["type"], "object");
      EXPECT_EQ(tool.contains("annotations"), std::string(version) >= "2025-03-26");
    }
    EXPECT_EQ(names.size(), mcp_tools().size());
    for (const McpTool& tool : mcp_tools()) EXPECT_TRUE(names.contains(std::string(tool.name)));
    server.close_input();
    EXPECT_EQ(server.wait(10), 0);
  }
  ServerProcess server(dir.path(), mcp());
  EXPECT_EQ(server.initialize("1999-01-01")["result"]["protocolVersion"], kProtocolVersions[3]);
}

TEST(Stdio, BadBytesAreAnsweredAndSurvived) {
  const TempDir dir;
  ServerProcess server(dir.path(), mcp());
  server.raw("garbage\n");
  Json answer = server.receive();
  EXPECT_EQ(code_of(answer), kRpcParseError);
  EXPECT_TRUE(answer["id"].is_null());
  server.raw("{\"jsonrpc\":\"2.0\",\"id\":4,\"method\":\"\xc3\x28\"}\n");
  EXPECT_EQ(code_of(server.receive()), kRpcParseError);
  server.raw("\n  \n" + std::string(200000, '[') + "\r\n");
  EXPECT_EQ(code_of(server.receive()), kRpcInvalidRequest);
  server.raw("{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"ping\"}\n");
  EXPECT_EQ(code_of(server.receive()), kRpcInvalidRequest);
  // The error arrives before the line's end; the rest of the line is skipped.
  const std::string piece(1 << 20, 'x');
  for (std::size_t sent = 0; sent <= kMaxFrameBytes; sent += piece.size()) server.raw(piece);
  EXPECT_EQ(code_of(server.receive()), kRpcInvalidRequest);
  server.raw("\n");
  EXPECT_TRUE(server.ask(5, "ping").contains("result"));
  server.initialize();
  server.raw("[{\"jsonrpc\":\"2.0\",\"id\":6,\"method\":\"ping\"}]\n");
  EXPECT_EQ(code_of(server.receive()), kRpcInvalidRequest);  // 2025-06-18 removed batches
  EXPECT_EQ(code_of(server.ask(10, "tools/call", {{"name", "no_such"}})), kRpcInvalidParams);
  EXPECT_TRUE(server.call(11, "evaluate", {{"task", "axpy"}})["isError"].get<bool>());
  EXPECT_TRUE(server.call(12, "evaluate", {{"task", 3}, {"source", ""}})["isError"].get<bool>());
  const Json extra = server.call(13, "list_tasks", {{"path", "/"}});
  EXPECT_TRUE(extra["isError"].get<bool>());
  EXPECT_TRUE(contains(text_of(extra), "has no argument path")) << text_of(extra);
  const Json outside = server.call(14, "read_task", {{"task", "../../examples/softmax"}});
  EXPECT_TRUE(contains(text_of(outside), "there is no task")) << text_of(outside);
  EXPECT_TRUE(server.call(15, "best", Json::object())["isError"].get<bool>());
}

TEST(Stdio, ABatchIsAnsweredTogetherWhereTheVersionHasThem) {
  const TempDir dir;
  ServerProcess server(dir.path(), mcp());
  server.initialize("2025-03-26");
  server.raw(
      "[{\"jsonrpc\":\"2.0\",\"id\":6,\"method\":\"ping\"},{\"jsonrpc\":\"2.0\",\"id\":7,"
      "\"method\":\"tools/call\",\"params\":{\"name\":\"list_tasks\"}}, 9]\n");
  const Json answers = server.receive();
  ASSERT_TRUE(answers.is_array());
  EXPECT_EQ(answers.size(), 3u);
}

TEST(Stdio, EvaluatesAndRemembers) {
  const TempDir dir;
  ServerProcess server(dir.path(), mcp());
  server.initialize();
  const Json read = server.call(2, "read_task", {{"task", "axpy"}});
  EXPECT_TRUE(contains(text_of(read), "extern \"C\" void launch(const Args& args)"));
  EXPECT_TRUE(contains(text_of(read), "## task.h of the case cpu")) << text_of(read);
  const Json wrong =
      server.call(3, "evaluate", {{"task", "axpy"}, {"source", axpy("args.x[i] + args.z[i]")}});
  EXPECT_FALSE(wrong["isError"].get<bool>()) << text_of(wrong);
  EXPECT_EQ(wrong["structuredContent"]["outcome"], "wrong-result");
  EXPECT_EQ(wrong["structuredContent"]["candidate"], 2);  // the start is the first
  const Json broken =
      server.call(4, "evaluate", {{"task", "axpy"}, {"source", axpy("nonsense /* ``` */")}});
  EXPECT_EQ(broken["structuredContent"]["outcome"], "compile-error");
  EXPECT_TRUE(contains(text_of(broken), "nonsense")) << text_of(broken);
  EXPECT_TRUE(contains(text_of(broken), "\n````\n")) << "the log must not end its fence\n"
                                                     << text_of(broken);
  const Json good = server.call(
      5, "evaluate",
      {{"task", "axpy"}, {"source", axpy("args.z[i] + 2 * args.x[i]")}, {"idea", "swapped"}});
  EXPECT_EQ(good["structuredContent"]["outcome"], "correct") << text_of(good);
  EXPECT_EQ(good["structuredContent"]["versus"]["candidate"], 1);
  EXPECT_LE(text_of(good).size(), kPageBytes + 200);
  const std::int64_t id = good["structuredContent"]["candidate"].get<std::int64_t>();
  const Json again =
      server.call(6, "evaluate", {{"task", "axpy"}, {"source", axpy("args.z[i] + 2 * args.x[i]")}});
  EXPECT_EQ(again["structuredContent"]["candidate"], id);
  EXPECT_TRUE(again["structuredContent"]["again"].get<bool>());
  const Json history = server.call(7, "history", Json::object());
  EXPECT_TRUE(contains(text_of(history), "swapped")) << text_of(history);
  EXPECT_EQ(history["structuredContent"]["candidates"].size(), 4u);
  const Json compared =
      server.call(8, "compare", {{"task", "axpy"}, {"candidate_a", id}, {"candidate_b", 1}});
  EXPECT_GT(compared["structuredContent"]["ratio"].get<double>(), 0.1) << text_of(compared);
  EXPECT_LE(compared["structuredContent"]["low"], compared["structuredContent"]["high"]);
  const Json page = server.call(9, "diagnose", {{"candidate", id}, {"max_bytes", 200}});
  EXPECT_TRUE(contains(text_of(page), "call again with offset")) << text_of(page);
  const Json failed = server.call(10, "diagnose", {{"candidate", 2}});
  EXPECT_TRUE(contains(text_of(failed), "wrong")) << text_of(failed);
  const Json done = server.call(11, "finish", Json::object());
  ASSERT_FALSE(done["isError"].get<bool>()) << text_of(done);
  for (const Json& file : done["structuredContent"]["files"]) {
    EXPECT_TRUE(exists(file.get<std::string>())) << file;
  }
  const std::string run = done["structuredContent"]["run"].get<std::string>();
  server.close_input();
  EXPECT_EQ(server.wait(10), 0);
  const auto log = read_file(join(dir.path(), "stderr"));
  EXPECT_TRUE(log && log->empty()) << *log;
  // The run on disk is an ordinary run.
  const auto store = Store::open(run, Store::Mode::kRead);
  ASSERT_TRUE(store) << store.error().text();
  const auto stored = (*store)->candidates();
  ASSERT_TRUE(stored);
  ASSERT_EQ(stored->size(), 4u);
  EXPECT_EQ((*stored)[1].known.candidate.origin.proposer, "mcp");
  EXPECT_TRUE((*store)->confirmation()->has_value());
}

// Those of the processes that are still alive.
std::vector<pid_t> alive(const std::vector<pid_t>& pids) {
  std::vector<pid_t> left;
  for (const ProcessInfo& each : all_processes()) {
    const bool one = std::find(pids.begin(), pids.end(), each.pid) != pids.end();
    if (one && !each.zombie) left.push_back(each.pid);
  }
  return left;
}

// Starts a kernel that never ends, and waits until it runs; returns the server's children.
std::vector<pid_t> run_endless(ServerProcess* server, int id) {
  server->start_call(id, "evaluate", {{"task", "axpy"}, {"source", kEndless}}, true);
  // The second time: the start is evaluated first. Each phase has an integer of its own.
  std::set<int> timing;
  for (int i = 0; i < 200 && timing.size() < 2; ++i) {
    const Json message = server->receive(60);
    if (!contains(dump_json(message), "checking and timing")) continue;
    timing.insert(static_cast<int>(message["params"]["progress"].get<double>()));
  }
  EXPECT_EQ(timing.size(), 2u);
  std::vector<pid_t> children;
  EXPECT_TRUE(eventually([&] {
    children = descendants(server->pid());
    return !children.empty();
  }));
  return children;
}

TEST(Stdio, CallsInFlightAndCancellation) {
  const TempDir dir;
  ServerProcess server(dir.path(), mcp());
  server.initialize();
  const auto children = run_endless(&server, 20);
  // Other calls are answered in the meantime; a second evaluation waits and is cancelled first.
  server.start_call(21, "evaluate", {{"task", "axpy"}, {"source", axpy("args.x[i]")}}, true);
  EXPECT_TRUE(server.ask(22, "ping").contains("result"));
  EXPECT_FALSE(server.call(23, "list_tasks", Json::object()).is_null());
  EXPECT_TRUE(contains(text_of(server.call(24, "history", Json::object())), "(best)"));
  EXPECT_EQ(code_of([&] {
              server.start_call(21, "list_tasks", Json::object());
              return server.answer(21);
            }()),
            kRpcInvalidRequest);
  const auto cancel = [&](int id) {
    server.send({{"jsonrpc", "2.0"},
                 {"method", "notifications/cancelled"},
                 {"params", {{"requestId", id}}}});
  };
  cancel(21);
  cancel(20);
  cancel(999);
  std::vector<Json> others;
  server.start_call(25, "evaluate",
                    {{"task", "axpy"}, {"source", axpy("args.x[i] + args.x[i] + args.z[i]")}});
  const Json answer = server.answer(25, 60, &others);
  ASSERT_TRUE(answer.contains("result"));
  EXPECT_EQ(answer["result"]["structuredContent"]["outcome"], "correct");
  for (const Json& each : others) EXPECT_FALSE(each.contains("id")) << dump_json(each);
  EXPECT_TRUE(alive(children).empty());
  // A cancelled evaluation has no result and may be requested again.
  const Json history = server.call(26, "history", Json::object());
  EXPECT_EQ(history["structuredContent"]["candidates"].size(), 2u) << text_of(history);
}

TEST(Stdio, AClientThatGoesAwayEndsEverything) {
  const TempDir dir;
  ServerProcess server(dir.path(), mcp());
  server.initialize();
  const auto children = run_endless(&server, 20);
  server.close_input();
  EXPECT_EQ(server.wait(10), 0);
  EXPECT_TRUE(alive(children).empty());
}

}  // namespace
}  // namespace kernelpro
