// SPDX-License-Identifier: Apache-2.0
// What an agent does besides evaluating its kernels: real servers, a real search on the cpu target.
#include "serve/mcp/tools.h"

#include <gtest/gtest.h>

#include "base/testing.h"
#include "serve/mcp/rpc.h"
#include "serve/mcp/testing/client.h"
#include "serve/runs/runs.h"

namespace kernelpro {
namespace {

using testing::ServerProcess;

constexpr double kPatience = 600;  // of a busy machine

std::string source_dir() { return KERNELPRO_SOURCE_DIR; }

std::string text_of(const Json& result) {
  return result.contains("content") ? result["content"][0]["text"].get<std::string>() : "";
}

// From code to an evaluated kernel, with decisions made in between.
TEST(McpTools, ATaskIsMadeOfCode) {
  const TempDir dir;
  ASSERT_TRUE(make_dirs(join(dir.path(), "tasks")));
  ServerProcess server(dir.path(), {"mcp", "tasks", "--target", "cpu", "--no-record"});
  server.initialize();
  const auto code = read_file(source_dir() + "/src/task/scaffold/fixtures/dot.cpp");
  ASSERT_TRUE(code);
  const Json made = server.call(2, "make_task", {{"name", "rows"}, {"source", *code}});
  ASSERT_FALSE(made["isError"].get<bool>()) << text_of(made);
  EXPECT_EQ(made["structuredContent"]["open"], 4) << text_of(made);
  EXPECT_TRUE(contains(text_of(made), "- task.toml:24: shape")) << text_of(made);
  const Json refused = server.call(3, "read_task", {{"task", "rows"}});
  EXPECT_TRUE(contains(text_of(refused), "places to be filled in")) << text_of(refused);
  const std::string file = join(dir.path(), "tasks/rows/task.toml");
  std::string toml = *read_file(file);
  toml = replace_all(toml, "TODO(kernelpro)", "decided");
  toml = replace_all(toml, "role = \"output\"\ndtype = \"fp32\"\nshape = [\"ROWS\", \"COLS\"]",
                     "role = \"output\"\ndtype = \"fp32\"\nshape = [\"ROWS\"]");
  toml = replace_all(toml, "ROWS = 4096, COLS = 8192", "ROWS = 512, COLS = 1024");
  const Json decided =
      server.call(4, "make_task", {{"name", "rows"}, {"files", {{"task.toml", toml}}}});
  EXPECT_EQ(decided["structuredContent"]["open"], 0) << text_of(decided);
  const auto kernel = read_file(join(dir.path(), "tasks/rows/kernel.cpp"));
  ASSERT_TRUE(kernel);
  const Json good = server.call(5, "evaluate", {{"task", "rows"}, {"source", *kernel}}, kPatience);
  EXPECT_EQ(good["structuredContent"]["outcome"], "correct") << text_of(good);
  // What others made is left alone, and nothing leaves the folder.
  ASSERT_TRUE(make_dirs(join(dir.path(), "tasks/theirs")));
  const Json theirs = server.call(6, "make_task", {{"name", "theirs"}, {"source", *code}});
  EXPECT_TRUE(contains(text_of(theirs), "exists already")) << text_of(theirs);
  const Json outside =
      server.call(7, "make_task", {{"name", "more"}, {"files", {{"../escaped", "x"}}}});
  EXPECT_TRUE(outside["isError"].get<bool>()) << text_of(outside);
  EXPECT_FALSE(exists(join(dir.path(), "tasks/escaped")));
}

TEST(McpTools, ASavedReportIsDiagnosed) {
  const TempDir dir;
  const std::string report =
      source_dir() + "/src/profile/import/testdata/fuzz_ncu_details/details.txt";
  ServerProcess server(dir.path(), {"mcp", ".", "--target", "cpu", "--no-record"});
  server.initialize();
  const Json read = server.call(2, "diagnose_file", {{"path", report}, {"max_bytes", 20000}});
  ASSERT_FALSE(read["isError"].get<bool>()) << text_of(read);
  EXPECT_FALSE(read["structuredContent"]["basis"].get<std::string>().empty());
  EXPECT_TRUE(contains(text_of(read), "device memory, is at 88.6 %")) << text_of(read);
  // The same of a machine elsewhere: its text, and what is not one or the other.
  const Json sent = server.call(5, "diagnose_file", {{"text", *read_file(report)}});
  EXPECT_TRUE(contains(text_of(sent), "device memory, is at 88.6 %")) << text_of(sent);
  const Json neither = server.call(6, "diagnose_file", Json::object());
  EXPECT_TRUE(contains(text_of(neither), "a path or a text")) << text_of(neither);
  const Json none = server.call(3, "diagnose_file", {{"path", "no-such.ncu-rep"}});
  EXPECT_TRUE(contains(text_of(none), "there is no file")) << text_of(none);
  const Json bad = server.call(4, "diagnose_program", {{"command", "ls"}});
  EXPECT_TRUE(contains(text_of(bad), "array of strings")) << text_of(bad);
}

// A search that goes on by itself: begun, followed, in nobody's way, stopped, read.
TEST(McpTools, ASearchIsStartedFollowedAndStopped) {
  const TempDir dir;
  ASSERT_TRUE(make_dirs(join(dir.path(), "tasks")));
  ServerProcess server(dir.path(), {"mcp", "tasks", "--target", "cpu", "--no-record"});
  server.initialize();
  // A small task with more settings than anyone waits for.
  Json files = Json::object();
  for (const char* file : {"task.toml", "reference.cpp"}) {
    files[file] = *read_file(source_dir() + "/tests/tasks/axpy/" + file);
  }
  files["kernel.cpp"] =
      "// @knob A 1 2 3 4 5 6 7 8\n// @knob B 1 2 3 4 5 6 7 8\n// @knob C 1 2 3 4 5 6 7 8\n"
      "#include \"task.h\"\nextern \"C\" void launch(const Args& args) {\n"
      // Far from the ceiling, near which a search would end before it is followed.
      "  volatile float one = 1;\n"
      "  for (int i = 0; i < N; ++i) args.y[i] = (2 * args.x[i] + args.z[i]) / one / one;\n}\n";
  const Json made = server.call(40, "make_task", {{"name", "tuned"}, {"files", files}});
  ASSERT_FALSE(made["isError"].get<bool>()) << text_of(made);
  const Json none = server.call(2, "follow", Json::object());
  EXPECT_TRUE(contains(text_of(none), "there is no run yet")) << text_of(none);
  const Json wrong =
      server.call(3, "optimize", {{"task", "tuned"}, {"model", "nobody:nothing"}}, kPatience);
  EXPECT_TRUE(contains(text_of(wrong), "ended before it began")) << text_of(wrong);
  const Json begun = server.call(
      4, "optimize", {{"task", "tuned"}, {"evaluations", 5000}, {"seconds", 3000}}, kPatience);
  ASSERT_FALSE(begun["isError"].get<bool>()) << text_of(begun);
  const std::string run = begun["structuredContent"]["run"].get<std::string>();
  const auto busy = [&](int id, const std::string& tool, const Json& arguments) {
    const Json answer = server.call(id, tool, arguments);
    EXPECT_TRUE(contains(text_of(answer), "would disturb the times")) << text_of(answer);
  };
  busy(5, "evaluate", {{"task", "tuned"}, {"source", "x"}});
  busy(6, "optimize", {{"task", "tuned"}});
  Json followed;
  for (int id = 100; id < 400; ++id) {
    followed = server.call(id, "follow", {{"wait_s", 2}}, kPatience);
    ASSERT_FALSE(followed["isError"].get<bool>()) << text_of(followed);
    if (followed["structuredContent"]["evaluations"].get<int>() >= 2) break;
  }
  EXPECT_EQ(followed["structuredContent"]["state"], "running") << text_of(followed);
  EXPECT_GE(followed["structuredContent"]["evaluations"], 2);
  EXPECT_TRUE(contains(text_of(followed), "The latest:")) << text_of(followed);
  const Json listed = server.call(20, "list_runs", Json::object());
  EXPECT_EQ(listed["structuredContent"]["runs"][0]["run"], run) << text_of(listed);
  const Json stopped = server.call(21, "stop", {{"run", run}});
  ASSERT_FALSE(stopped["isError"].get<bool>()) << text_of(stopped);
  for (int id = 500; id < 520 && followed["structuredContent"]["state"] == "running"; ++id) {
    followed = server.call(id, "follow", {{"run", run}, {"wait_s", 60}}, kPatience);
  }
  EXPECT_EQ(followed["structuredContent"]["state"], "stopped") << text_of(followed);
  // What it left can be read, by clients elsewhere too.
  const Json resources = server.ask(30, "resources/list")["result"]["resources"];
  ASSERT_EQ(resources.size(), 4u);
  const Json templates = server.ask(31, "resources/templates/list")["result"];
  EXPECT_EQ(templates["resourceTemplates"].size(), 4u);
  for (const Json& each : resources) {
    const Json read = server.ask(32, "resources/read", {{"uri", each["uri"]}});
    const Json& content = read["result"]["contents"][0];
    EXPECT_EQ(content["mimeType"], each["mimeType"]);
    const std::string text = content["text"].get<std::string>();
    const bool kernel = each["uri"].get<std::string>().ends_with("/kernel");
    EXPECT_TRUE(contains(text, kernel ? "launch" : "axpy")) << each;
  }
  const Json unknown = server.ask(33, "resources/read", {{"uri", "kernelpro://run/0/kernel"}});
  EXPECT_EQ(unknown["error"]["code"], kRpcResourceNotFound) << unknown;
}

}  // namespace
}  // namespace kernelpro
