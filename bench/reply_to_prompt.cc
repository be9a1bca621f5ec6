// SPDX-License-Identifier: Apache-2.0
// Time from a reply to the prompt for the next step, without compiling and running: from the
// server's reply to a model's client to the next request that reaches the server.
//   bench_reply_to_prompt [EVALUATIONS]     100
// Only compiling, running and the model are faked: client, sockets, extraction, store, diagnosis
// (of counters recorded on a GPU), search and prompts are real. Limit: 50 ms each; exit status 1
// above it.
#include <cstdio>
#include <cstdlib>

#include "base/files.h"
#include "base/json.h"
#include "base/statistics/statistics.h"
#include "measure/station/testing/fake_target.h"
#include "run/launch.h"
#include "write/model/local_server.h"

namespace kernelpro {
namespace {

constexpr double kMostMs = 50;

// A kernel of typical length, a different one each time.
std::string reply() {
  std::string source =
      "// idea: version {n}, which loads wider than the one before it\n"
      "// @knob V {n}\n// @knob TILE 16 32 64 : tile-size\n#include \"task.h\"\n";
  for (int i = 0; i < 300; ++i) {
    source += "static inline float part" + std::to_string(i) + "(float x) { return x * " +
              std::to_string(i) + ".0f; }\n";
  }
  return "The loads are narrow, so they come first.\n\n```cpp\n" + source +
         "extern \"C\" void launch(const Args& args) {}\n```\n";
}

Result<TargetMaker> target() {
  KP_ASSIGN(auto text,
            read_file(KERNELPRO_SOURCE_DIR "/src/diagnose/fixtures/counted-gemm-wmma.json"));
  const Json json = parse_json(text).value_or(Json());
  const auto evidence = evidence_from_json(dump_json(JsonReader(json).object("evidence")));
  if (!evidence) {
    return fail(ErrorKind::kBadInput, "the recording cannot be read", "restore it from git");
  }
  testing::FakeSettings fake;
  fake.landscape = [](const KnobValues& k) {
    return 1000 / (1 + std::fmod(testing::knob(k, "V"), 17));
  };
  const TargetMaker plain = testing::fake_target(fake);
  return TargetMaker([plain, evidence](const Task& task, const StationSettings& settings) {
    auto made = plain(task, settings);
    if (made) {
      Ceilings& ceilings = made->machine->ceilings;  // of the GPU in the recording
      ceilings.copy_bytes_per_s = evidence->get("ceiling.copy_bandwidth").value_or(0);
      ceilings.fma_flops_per_s = evidence->get("ceiling.fma_rate").value_or(0);
      ceilings.tensor_flops_per_s = evidence->get("ceiling.tensor_rate").value_or(0);
      made->collect = [evidence](const Task&, const Case&, const Machine&, const Binary&,
                                 const Evaluation&, const CallFacts&) { return *evidence; };
    }
    return made;
  });
}

Result<int> measure(int evaluations) {
  KP_ASSIGN(const auto server, LocalServer::start(KERNELPRO_SOURCE_DIR));
  Json rule = Json::object();
  rule["when"] = "";
  rule["say"] = reply();
  server.script("bench", Json(std::vector<Json>{rule}));
  KP_ASSIGN(const auto maker, target());
  const TempDir dir;
  RunSettings settings;
  settings.directory = join(dir.path(), "run");
  settings.max_evaluations = evaluations;
  settings.max_seconds = 250;
  settings.near_ceiling = 0;
  settings.proposer = "model";
  settings.roles.coder = server.base("bench", "script") + "#any";
  settings.roles.one_call = true;
  settings.roles.ideas = 1;
  settings.roles.tune = 0;
  std::vector<double> own;
  KP_ASSIGN(const auto result,
            optimize_with(local_stations(maker), testing::fake_task(), settings, nullptr, &own));
  std::vector<double> ms;
  for (const Json& gap : server.ask("/gaps/bench")) ms.push_back(1000 * gap.get<double>());
  if (ms.empty()) {
    return fail(ErrorKind::kInternal, "nothing was asked: " + result.stopped_by, "see the run");
  }
  std::printf("| steps | median ms | p95 ms | max ms | limit ms |\n|---|---|---|---|---|\n");
  std::printf("| %zu | %.2f | %.2f | %.2f | %.0f |\n", ms.size(), median(ms), quantile(ms, 0.95),
              quantile(ms, 1), kMostMs);
  return quantile(ms, 1) <= kMostMs ? 0 : 1;
}

}  // namespace
}  // namespace kernelpro

int main(int argc, char** argv) {
  using namespace kernelpro;
  const auto status = measure(argc > 1 ? std::atoi(argv[1]) : 100);
  if (status) return *status;
  std::fprintf(stderr, "bench_reply_to_prompt: %s\n", status.error().text().c_str());
  return static_cast<int>(status.error().kind);
}
