// SPDX-License-Identifier: Apache-2.0
// Overhead of an evaluation through MCP, and the savings from keeping the target prepared: a client
// of a real `kernelpro mcp` process on the cpu target.
//   bench_mcp TASK KERNEL [CALLS]     bench_mcp examples/softmax examples/softmax/kernel.cpp
// The kernel is sent repeatedly, each time with a different comment, so that it is a new candidate.
// "own" is the time from request to answer minus compilers, workers and disassemblers: protocol,
// store, diagnosis, text.
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "base/files.h"
#include "base/statistics/statistics.h"
#include "serve/mcp/testing/client.h"

namespace {

using namespace kernelpro;

// Milliseconds of one call, and the part in other processes.
struct Call {
  double all = 0;
  double outside = 0;
};

double ms_of(testing::ServerProcess* server, int id, const char* tool) {
  const double from = real_clock().now_s();
  server->call(id, tool, Json::object());
  return 1000 * (real_clock().now_s() - from);
}

Call evaluate(testing::ServerProcess* server, int id, const std::string& task,
              const std::string& source) {
  const double from = real_clock().now_s();
  const Json result = server->call(
      id, "evaluate", {{"task", task}, {"source", source + "// call " + std::to_string(id) + "\n"}},
      600);
  Call call;
  call.all = 1000 * (real_clock().now_s() - from);
  const Json& told = result.value("structuredContent", Json::object());
  call.outside = told.value("outside_ms", 0.0);
  if (told.value("outcome", "") == "correct") return call;
  std::fprintf(stderr, "bench_mcp: the kernel is not correct: %s\n", dump_json(result).c_str());
  std::exit(1);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: bench_mcp TASK KERNEL [CALLS]\n");
    return 2;
  }
  const auto source = read_file(argv[2]);
  if (!source) {
    std::fprintf(stderr, "bench_mcp: %s\n", source.error().text().c_str());
    return 2;
  }
  const int calls = argc > 3 ? std::atoi(argv[3]) : 12;
  const TempDir folder;
  testing::ServerProcess server(folder.path(),
                                {"mcp", absolute(argv[1]), "--target", "cpu", "--no-record"});
  server.initialize();
  const std::string task = basename(absolute(argv[1]));
  const Call first = evaluate(&server, 2, task, *source);
  const Call second = evaluate(&server, 3, task, *source);
  std::vector<double> all, own;
  for (int i = 0; i < calls; ++i) {
    const Call call = evaluate(&server, 4 + i, task, *source);
    all.push_back(call.all);
    own.push_back(call.all - call.outside);
  }
  std::vector<double> history;
  for (int i = 0; i < 50; ++i) history.push_back(ms_of(&server, 1000 + i, "history"));
  std::printf(
      "| task | first call ms | second call ms | later ones, median ms | own, median ms | "
      "own, p95 ms | history, median ms |\n|---|---|---|---|---|---|---|\n");
  std::printf("| %s | %.0f | %.0f | %.0f | %.2f | %.2f | %.2f |\n", task.c_str(), first.all,
              second.all, median(all), median(own), quantile(own, 0.95), median(history));
  return 0;
}
