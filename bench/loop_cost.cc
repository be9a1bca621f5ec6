// SPDX-License-Identifier: Apache-2.0
// Overhead of the loop: all but compiling, running, disassembling and waiting for a writer.
//   bench_loop_cost [FOLDER] [EVALUATIONS]
// Runs the loop with its real store (in FOLDER, a temporary one by default), search and tuner; only
// compiling and running are faked. Limit: 2 ms per evaluation; exit status 1 above it.
#include <cstdio>
#include <cstdlib>
#include <numeric>

#include "base/files.h"
#include "base/statistics/statistics.h"
#include "core/candidate/knobs.h"
#include "measure/station/testing/fake_target.h"
#include "run/launch.h"

namespace {

// A starting kernel of typical size: the source is stored once and hashed often.
kernelpro::Task task() {
  kernelpro::Task task = kernelpro::testing::fake_task();
  for (int i = 0; i < 200; ++i) task.kernel_cpp += "// a line of a kernel of usual length\n";
  return task;
}

}  // namespace

int main(int argc, char** argv) {
  using namespace kernelpro;
  TempDir temporary;
  const std::string folder = join(argc > 1 ? argv[1] : temporary.path(), "loop-cost-run");
  RunSettings settings;
  settings.directory = folder;
  settings.max_evaluations = argc > 2 ? std::atoi(argv[2]) : 200;
  settings.near_ceiling = 0;
  testing::FakeSettings fake;
  fake.landscape = testing::smooth_landscape;
  std::vector<double> own;
  const auto result = optimize_with(testing::fake_station(fake), task(), settings, nullptr, &own);
  if (!result) {
    std::fprintf(stderr, "bench_loop_cost: %s\n", result.error().text().c_str());
    return static_cast<int>(result.error().kind);
  }
  const double mean =
      std::accumulate(own.begin(), own.end(), 0.0) / static_cast<double>(own.size());
  std::printf("| evaluations | mean ms | median ms | p95 ms | max ms | limit ms |\n");
  std::printf("|---|---|---|---|---|---|\n");
  std::printf("| %zu | %.3f | %.3f | %.3f | %.3f | 2 |\n", own.size(), mean, median(own),
              quantile(own, 0.95), quantile(own, 1));
  return mean <= 2 ? 0 : 1;
}
