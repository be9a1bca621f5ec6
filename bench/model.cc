// SPDX-License-Identifier: Apache-2.0
// Both clients against the local server, which fails some of its answers: does every call end, and
// is every token counted? Prints a table; exits 1 when a count disagrees.
//   bench_model [CALLS [FAULT_PERCENT [THREADS]]]     1000 20 8
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/statistics/statistics.h"
#include "write/model/client.h"
#include "write/model/local_server.h"

namespace kernelpro {
namespace {

struct Outcomes {
  Counts counts;
  std::int64_t ended = 0;  // as the callers saw it
  Usage usage;             // as the results report it, exact and estimated together
  std::vector<double> seconds;
  double wall = 0;
};

ChatRequest question(int number) {
  ChatRequest request;
  request.system = "You write kernels.";
  request.messages.push_back({Speaker::kUser, "Question " + std::to_string(number), {}, {}});
  return request;
}

Outcomes ask(ChatClient& client, int calls, int threads) {
  Outcomes outcomes;
  std::atomic<int> next{0};
  std::mutex mutex;
  const double begin = real_clock().now_s();
  std::vector<std::thread> workers;
  for (int t = 0; t < threads; ++t) {
    workers.emplace_back([&] {
      for (int i = next++; i < calls; i = next++) {
        const double from = real_clock().now_s();
        const ChatResult result = client.complete(question(i));
        const double took = real_clock().now_s() - from;
        const std::lock_guard lock(mutex);
        ++outcomes.ended;
        if (result) {
          outcomes.usage += result->usage;
          outcomes.usage += result->wasted;
          outcomes.seconds.push_back(took);
        } else {
          outcomes.usage += result.error().wasted;
        }
      }
    });
  }
  for (std::thread& worker : workers) worker.join();
  outcomes.wall = real_clock().now_s() - begin;
  outcomes.counts = client.counts();
  return outcomes;
}

void print(const char* what, std::int64_t value) {
  std::printf("| %s | %lld |\n", what, static_cast<long long>(value));
}

// Prints a row that both sides counted; false when they disagree.
bool print(const char* what, std::int64_t client, std::int64_t server) {
  std::printf("| %s | %lld, the server: %lld%s |\n", what, static_cast<long long>(client),
              static_cast<long long>(server), client == server ? "" : " DISAGREES");
  return client == server;
}

bool measure(const LocalServer& server, std::string_view api, int calls, int percent, int threads) {
  const bool anthropic = api == "anthropic";
  ClientSettings settings;
  settings.spec.api = api;
  settings.spec.model = "bench";
  settings.spec.name = "bench";
  settings.spec.base_url =
      server.base(anthropic ? "anthropic" : "openai", "random-" + std::to_string(percent));
  settings.stall_s = 0.5;
  settings.retry.first_wait_s = 0.02;  // the server's Retry-After, if sent, is 20 ms too
  const auto client = make_client(settings);
  if (!client) {
    std::fprintf(stderr, "%s\n", client.error().text().c_str());
    return false;
  }
  const Json before = server.ask("/stats");
  const Outcomes outcomes = ask(**client, calls, threads);
  const Json after = server.ask("/stats");
  const auto served = [&](const char* name) {
    return JsonReader(after).integer(name) - JsonReader(before).integer(name);
  };
  const Counts& counts = outcomes.counts;
  std::printf("\n%s, %d calls, %d %% faults, %d threads\n\n| what | count |\n|---|---|\n",
              anthropic ? "Messages API" : "OpenAI-compatible API", calls, percent, threads);
  print("replies", counts.replies);
  for (int i = 0; i < kFailureKinds; ++i) {
    const auto kind = static_cast<std::size_t>(i);
    const std::string name(failure_name(static_cast<FailureKind>(i)));
    if (counts.failures[kind] > 0) print(("failed: " + name).c_str(), counts.failures[kind]);
    if (counts.retried[kind] > 0) print(("repeated: " + name).c_str(), counts.retried[kind]);
  }
  bool agree = counts.replies + counts.failed() == calls && outcomes.ended == calls;
  std::printf("| every call ended in one reply or one failure | %s |\n", agree ? "yes" : "NO");
  agree &= print("input tokens of whole replies",
                 counts.reported.input + counts.reported.cache_read + counts.reported.cache_written,
                 served("whole_input"));
  agree &= print("output tokens of whole replies", counts.reported.output, served("whole_output"));
  agree &= print("replies that broke off, flagged as estimated", counts.estimated_attempts,
                 served("part"));
  // Estimates: printed, not checked.
  std::printf("| output tokens of those, estimated | %lld, the server: %lld |\n",
              static_cast<long long>(counts.estimated.output),
              static_cast<long long>(served("part_output")));
  std::printf("| input tokens of those, partly estimated | %lld, the server: %lld |\n",
              static_cast<long long>(counts.estimated.input),
              static_cast<long long>(served("part_input")));
  agree &= print("tokens told to callers, against the client's sum", outcomes.usage.total(),
                 counts.reported.total() + counts.estimated.total());
  std::printf("| time of a call with a reply, median / 99 %% | %.1f ms / %.0f ms |\n",
              1e3 * median(outcomes.seconds), 1e3 * quantile(outcomes.seconds, 0.99));
  std::printf("| calls in a second | %.0f |\n", calls / outcomes.wall);
  return agree;
}

int main_with(int calls, int percent, int threads) {
  const auto server = LocalServer::start(KERNELPRO_SOURCE_DIR);
  if (!server) {
    std::fprintf(stderr, "%s\n", server.error().text().c_str());
    return static_cast<int>(server.error().kind);
  }
  bool agree = true;
  for (const char* api : {"anthropic", "openai"}) {
    agree &= measure(*server, api, calls, percent, threads);
  }
  return agree ? 0 : 1;
}

}  // namespace
}  // namespace kernelpro

int main(int argc, char** argv) {
  const auto argument = [&](int at, int otherwise) {
    return argc > at ? std::max(0, std::atoi(argv[at])) : otherwise;
  };
  return kernelpro::main_with(std::max(1, argument(1, 1000)), argument(2, 20),
                              std::max(1, argument(3, 8)));
}
