// SPDX-License-Identifier: Apache-2.0
// How close the loop gets to the machine's limits on the examples, measured in one run:
//   bench_figures cpu|cuda [EVALUATIONS] [EXAMPLE...]      from the project's folder
// Each row: the embedded tuner optimizes an example from its default knobs; then five rounds of
// yardstick, winner, yardstick, whose median share is reported. The yardstick is a copy of the
// task's bytes at the measured bandwidth; for matmul, sgemm of OpenBLAS on the same threads (cpu)
// or of cuBLAS with TF32 off (cuda). `bench_figures matmul` measures only the latter. Exit status 1
// when a figure is missed.
#include <dlfcn.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/files.h"
#include "base/statistics/statistics.h"
#include "base/text.h"
#include "measure/ceilings/ceilings.h"
#include "run/evaluate_one.h"
#include "run/run.h"
#include "run/store/store.h"
#include "task/load/loader.h"
#include "yardsticks/cublas.h"

namespace {

using namespace kernelpro;

constexpr int kRounds = 5;

struct Figure {
  const char* example;
  TargetKind target;
  bool blas;         // yardstick: OpenBLAS or cuBLAS instead of copy bandwidth
  double start_max;  // upper limit for the start's share of the yardstick
  double end_min;    // lower limit for the winner's share
};

constexpr Figure kFigures[] = {
    {"matmul", TargetKind::kCpu, true, 0.125, 0.50},
    {"softmax", TargetKind::kCpu, false, 0.175, 0.70},
    {"layernorm", TargetKind::kCpu, false, 0.175, 0.70},
    {"matmul", TargetKind::kCuda, true, 1, 0.60},
    {"softmax", TargetKind::kCuda, false, 0.425, 0.85},
    {"layernorm", TargetKind::kCuda, false, 0.425, 0.85},
};

// Median microseconds of sgemm n^3; 0 without OpenBLAS.
double openblas_us(int n, int threads) {
  void* library = ::dlopen("libopenblas.so.0", RTLD_NOW);
  if (library == nullptr) return 0;
  using SetThreads = void (*)(int);
  using Sgemm = void (*)(int, int, int, int, int, int, float, const float*, int, const float*, int,
                         float, float*, int);
  const auto set_threads =
      reinterpret_cast<SetThreads>(::dlsym(library, "openblas_set_num_threads"));
  const auto sgemm = reinterpret_cast<Sgemm>(::dlsym(library, "cblas_sgemm"));
  if (set_threads == nullptr || sgemm == nullptr) return 0;
  set_threads(threads);
  const auto count = static_cast<std::size_t>(n) * static_cast<std::size_t>(n);
  std::vector<float> a(count), b(count), c(count);
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  for (float& v : a) v = normal(random);
  for (float& v : b) v = normal(random);
  std::vector<double> times;
  constexpr int kRowMajor = 101, kNoTranspose = 111;
  for (int i = 0; i < 45; ++i) {
    const std::int64_t start = real_clock().now_ns();
    sgemm(kRowMajor, kNoTranspose, kNoTranspose, n, n, n, 1, a.data(), n, b.data(), n, 0, c.data(),
          n);
    if (i >= 5) times.push_back(static_cast<double>(real_clock().now_ns() - start) * 1e-3);
  }
  return median(times);
}

struct Row {
  double start_us = 0, end_us = 0;     // of the run
  double yardstick_us = 0, share = 0;  // medians of the rounds after it
  RunResult result;
  std::string machine, versions;
  KnobValues knobs;
};

// Time of a call of this task at the yardstick's speed, measured now.
Result<double> yardstick_us(const Figure& figure, const Task& task, const Case& c) {
  if (figure.blas && figure.target == TargetKind::kCuda) return cublas_us(4096);
  if (figure.blas) {
    const double us = openblas_us(1024, 2);
    if (us > 0) return us;
    return fail(ErrorKind::kEnvironment, "OpenBLAS was not found",
                "run `make bench`, or apt-get install libopenblas-dev");
  }
  const TempDir fresh;  // the usual cache keeps ceilings for a day
  ::setenv("KERNELPRO_CACHE", fresh.path().c_str(), 1);
  KP_ASSIGN(const auto machine,
            figure.target == TargetKind::kCpu ? describe_cpu_machine() : describe_cuda_machine());
  return compulsory_bytes(task, c) / machine.ceilings.copy_bytes_per_s * 1e6;
}

// Rounds of yardstick, winner, yardstick: if the machine's speed drifts, only neighbors compare.
Result<void> compare(const Figure& figure, const Task& task, Row* row) {
  const std::vector<const Case*> cases = cases_for(task, figure.target);
  const bool cpu = figure.target == TargetKind::kCpu;
  RunSettings settings;
  settings.target = figure.target;
  std::vector<double> shares, yardsticks;
  for (int round = 0; round < kRounds; ++round) {
    KP_ASSIGN(const double before, yardstick_us(figure, task, *cases.back()));
    KP_ASSIGN(const auto one,
              evaluate_one(task, figure.target, cpu ? task.kernel_cpp : task.kernel_cu, row->knobs,
                           settings));
    const double us = score_us(one.evaluation);
    if (us <= 0) {
      return fail(ErrorKind::kTask, "the winner failed: " + outcome_summary(one.evaluation.outcome),
                  "run the bench again");
    }
    KP_ASSIGN(const double after, yardstick_us(figure, task, *cases.back()));
    yardsticks.push_back(std::sqrt(before * after));
    shares.push_back(yardsticks.back() / us);
  }
  row->yardstick_us = median(yardsticks);
  row->share = median(shares);
  return {};
}

Result<Row> measure(const Figure& figure, int evaluations, const std::string& folder) {
  KP_ASSIGN(const Task task, load_task(join("examples", figure.example)));
  RunSettings settings;
  settings.directory = folder;
  settings.target = figure.target;
  settings.max_evaluations = evaluations;
  settings.near_ceiling = 0;
  Row row;
  const TempDir cache;  // no cache hits from earlier runs
  ::setenv("KERNELPRO_CACHE", cache.path().c_str(), 1);
  KP_ASSIGN(const RunResult result, optimize(task, settings, nullptr));
  row.result = result;
  row.end_us = result.best_us;
  KP_ASSIGN(const auto store, Store::open(folder, Store::Mode::kRead));
  const auto header = store->header();
  const auto candidates = store->candidates();
  if (!header || !candidates) {
    return tl::unexpected<Error>(header ? candidates.error() : header.error());
  }
  row.machine = header->machine.name;
  row.versions = header->machine.versions;
  for (const StoredCandidate& c : *candidates) {
    if (c.known.id == 1) row.start_us = score_us(c.known.evaluation);
    if (c.known.id == result.best) row.knobs = c.known.candidate.knobs;
  }
  KP_TRY(compare(figure, task, &row));
  return row;
}

}  // namespace

int main(int argc, char** argv) {
  const bool matmul = argc > 1 && std::string(argv[1]) == "matmul";
  const auto target = matmul ? TargetKind::kCuda : target_from_name(argc > 1 ? argv[1] : "cpu");
  if (!target) {
    std::fprintf(stderr, "usage: bench_figures cpu|cuda|matmul [EVALUATIONS] [EXAMPLE...]\n");
    return 2;
  }
  const int evaluations = argc > 2 ? std::atoi(argv[2]) : 60;
  const TempDir runs;
  const char* keep = std::getenv("KERNELPRO_BENCH_RUNS");  // where to keep the run folders
  int missed = 0;
  std::string machine;
  std::printf(
      "| example | yardstick | start | of it | end | of it | wanted | speed-up (95 %%) | "
      "evaluations | own ms/evaluation | knobs |\n");
  std::printf("|---|---|---|---|---|---|---|---|---|---|---|\n");
  for (const Figure& figure : kFigures) {
    bool wanted = figure.target == *target && argc <= 3;
    if (matmul) wanted = wanted && figure.blas;
    for (int i = 3; i < argc; ++i) {
      wanted = wanted || (figure.target == *target && std::string(argv[i]) == figure.example);
    }
    if (!wanted) continue;
    const std::string folder =
        join(keep != nullptr ? keep : runs.path(),
             std::string(figure.example) + "-" + std::string(target_name(figure.target)));
    const Result<Row> row = measure(figure, evaluations, folder);
    if (!row) {
      std::fprintf(stderr, "bench_figures: %s: %s\n", figure.example, row.error().text().c_str());
      return static_cast<int>(row.error().kind);
    }
    const double start = row->yardstick_us / row->start_us, end = row->share;
    const bool ok = start < figure.start_max && end >= figure.end_min;
    if (!ok) ++missed;
    machine = row->machine + (row->versions.empty() ? "" : ", " + row->versions);
    std::printf(
        "| %s | %s %s | %s | %.1f %% | %s | %.1f %% | >= %.0f %% %s | %.2fx (%.2f-%.2f) | %d | "
        "%.2f | %s |\n",
        figure.example,
        !figure.blas                        ? "copy"
        : figure.target == TargetKind::kCpu ? "OpenBLAS sgemm"
                                            : "cuBLAS sgemm, TF32 off",
        human_us(row->yardstick_us).c_str(), human_us(row->start_us).c_str(), 100 * start,
        human_us(row->end_us).c_str(), 100 * end, 100 * figure.end_min, ok ? "yes" : "NO",
        row->result.speedup, row->result.speedup_low, row->result.speedup_high,
        row->result.evaluations, row->result.own_ms_per_evaluation,
        knobs_to_text(row->knobs).c_str());
    std::fflush(stdout);
  }
  std::printf("\nmachine: %s; %s\n", machine.c_str(), utc_now().c_str());
  return missed == 0 ? 0 : 1;
}
