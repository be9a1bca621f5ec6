// SPDX-License-Identifier: Apache-2.0
// Measures the evaluator itself. Each command prints a table:
//   bench_evaluation repeat    cpu|cuda              one kernel in ten fresh processes
//   bench_evaluation same      cpu|cuda [TRIALS [US [S]]]  a kernel against itself: how often is a
//                                                    difference reported? US: its approximate time,
//                                                    5 or 50; at most S seconds
//   bench_evaluation endurance cpu|cuda [N [S]]      good, wrong, crashing, hanging, rejected and
//                                                    non-compiling candidates: does anything leak?
//   bench_evaluation speed     cpu|cuda [full]       from source text to verified and timed
// Exit status 1 when a figure is missed.
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/files.h"
#include "base/process/subprocess.h"
#include "base/statistics/statistics.h"
#include "base/text.h"
#include "evaluation/endurance.h"
#include "evaluation/standing.h"

namespace {

using namespace kernelpro;
using namespace kernelpro::bench;

// ---- repeat ----

int once(TargetKind target, int us) {
  constexpr int kStandby = 3;  // as in `kernelpro evaluate`
  const Standing standing(leaky_task(elements_for(target, us)), target, 30, kStandby);
  const Subject subject = standing.subject(kernel(target, "plan", "", "repeat"));
  const Evaluation evaluation = standing.evaluate(subject, nullptr);
  const Timing& timing = correct_or_give_up(evaluation).timings[0];
  std::printf("%.6f us, %.6f to %.6f, %d samples\n", timing.median_us, timing.low_us,
              timing.high_us, timing.samples);
  return 0;
}

int repeat(TargetKind target) {
  constexpr int kProcesses = 10;
  bool missed = false;
  std::printf("| call of about | processes | median | lowest | highest | CV | wanted |\n");
  std::printf("|---|---|---|---|---|---|---|\n");
  for (const int us : {5, 50}) {
    std::vector<double> times;
    for (int i = 0; i < kProcesses; ++i) {
      Command command;
      command.argv = {"/proc/self/exe", "once", std::string(target_name(target)),
                      std::to_string(us)};
      command.limits.wall_seconds = 120;
      const Exit exit = must(run(command));
      if (!exit.ok()) give_up({ErrorKind::kEnvironment, exit.output, "run it alone"});
      times.push_back(std::atof(exit.output.c_str()));
      std::fprintf(stderr, "%s", exit.output.c_str());
    }
    double mean = 0, squares = 0;
    for (const double t : times) mean += t / kProcesses;
    for (const double t : times) squares += (t - mean) * (t - mean) / (kProcesses - 1);
    const double cv = std::sqrt(squares) / mean;
    const double wanted = us >= 50 ? 0.003 : 0.01;
    missed = missed || cv > wanted;
    std::printf("| %d us | %d | %s | %s | %s | %.3f %% | <= %.1f %% %s |\n", us, kProcesses,
                human_us(median(times)).c_str(),
                human_us(*std::min_element(times.begin(), times.end())).c_str(),
                human_us(*std::max_element(times.begin(), times.end())).c_str(), 100 * cv,
                100 * wanted, cv <= wanted ? "yes" : "NO");
    std::fflush(stdout);
  }
  std::printf("\n%s\n", utc_now().c_str());
  return missed ? 1 : 0;
}

// ---- same ----

int same(TargetKind target, int trials, int us, double most_s) {
  const double start = real_clock().now_s();
  const Standing standing(leaky_task(elements_for(target, us)), target, 30, kManyWorkers);
  const Subject a = standing.subject(kernel(target, "plan", "", "one"));
  const Subject b = standing.subject(kernel(target, "plan", "", "the other"));
  const EvaluateSettings defaults;
  int faster = 0, slower = 0, excluded = 0;
  std::vector<double> ratios, samples;
  const double begun = real_clock().now_s();
  for (int i = 0; i < trials; ++i) {
    if (real_clock().now_s() - start > most_s) {
      trials = i;
      break;
    }
    const bool swapped = i % 2 == 1;
    const Evaluation evaluation = standing.evaluate(swapped ? b : a, swapped ? &a : &b);
    const Correct& correct = correct_or_give_up(evaluation);
    if (!correct.versus) give_up({ErrorKind::kInternal, "no comparison was made", "run it again"});
    const Correct::Versus& v = *correct.versus;
    faster += v.low > 1 + defaults.min_effect ? 1 : 0;
    slower += v.high < 1 - defaults.min_effect ? 1 : 0;
    excluded += v.low > 1 || v.high < 1 ? 1 : 0;
    ratios.push_back(v.ratio);
    samples.push_back(correct.timings[0].samples);
    if (i % 100 == 99) {
      std::fprintf(stderr, "%d trials, %d faster, %d slower, %d intervals without 1; %.0f s\n",
                   i + 1, faster, slower, excluded, real_clock().now_s() - begun);
    }
  }
  const double seconds = real_clock().now_s() - begun;
  const double declared = static_cast<double>(faster + slower) / trials;
  const bool ok = declared <= 0.05;
  std::printf(
      "| kernel | trials | declared different | faster | slower | wanted | interval without 1 | "
      "median ratio | 95 %% of ratios | pairs (median) | ms a trial |\n");
  std::printf("|---|---|---|---|---|---|---|---|---|---|---|\n");
  std::printf(
      "| %d us | %d | %.2f %% | %d | %d | <= 5 %% %s | %.2f %% | %.4f | %.4f-%.4f | %.0f | %.0f "
      "|\n",
      us, trials, 100 * declared, faster, slower, ok ? "yes" : "NO", 100.0 * excluded / trials,
      median(ratios), quantile(ratios, 0.025), quantile(ratios, 0.975), median(samples),
      1e3 * seconds / trials);
  std::printf("%s", machine_line(standing.target).c_str());
  return ok ? 0 : 1;
}

// ---- speed ----

struct Sizes {
  const char* name;
  std::int64_t elements;
};

std::vector<Sizes> speed_sizes(TargetKind target, bool full) {
  if (target == TargetKind::kCpu) {
    std::vector<Sizes> sizes = {{"256 x 1024", 256 << 10}};
    if (full) sizes.push_back({"4096 x 4096", 16 << 20});
    return sizes;
  }
  std::vector<Sizes> sizes = {{"4096 x 1024", 4 << 20}};
  if (full) sizes.push_back({"4096 x 393216", 4096LL * 393216});
  return sizes;
}

struct Speed {
  std::vector<double> total, compile, evaluate;
  std::map<std::string, std::vector<double>> parts;
  Timing timing;
};

Speed measure_speed(const Standing& standing, const std::string& form, int rounds) {
  Speed speed;
  const TargetKind target = standing.settings.target;
  for (int i = -1; i < rounds; ++i) {  // -1 is a warm-up: standby workers, page cache
    const Candidate candidate =
        kernel(target, form, "", form + " " + std::to_string(i) + " " + utc_now());
    const double start = real_clock().now_s();
    const Subject subject = standing.subject(candidate);
    const double built = real_clock().now_s();
    const Evaluation evaluation = standing.evaluate(subject, nullptr);
    const double end = real_clock().now_s();
    const Correct& correct = correct_or_give_up(evaluation);
    ::usleep(300000);  // a writer's thinking time: the next standby worker gets ready
    if (i < 0) continue;
    speed.total.push_back((end - start) * 1e3);
    speed.compile.push_back((built - start) * 1e3);
    speed.evaluate.push_back((end - built) * 1e3);
    speed.timing = correct.timings.back();
    for (const auto& [name, value] : correct.observed) {
      if (name.starts_with("evaluate.")) speed.parts[name].push_back(value);
    }
  }
  return speed;
}

int speed(TargetKind target, bool full) {
  const TempDir cache;  // no cache hits from earlier builds
  ::setenv("KERNELPRO_CACHE", cache.path().c_str(), 1);
  constexpr int kRounds = 7;
  std::printf(
      "| size | form | source to verdict ms | compile ms | evaluate ms | parts of it ms | call | "
      "timed calls | prepared once in ms |\n");
  std::printf("|---|---|---|---|---|---|---|---|---|\n");
  std::string machine;
  for (const Sizes& size : speed_sizes(target, full)) {
    const double start = real_clock().now_s();
    const Standing standing(leaky_task(size.elements), target, 30);
    const double prepared_ms = (real_clock().now_s() - start) * 1e3;
    machine = machine_line(standing.target);
    for (const char* form : {"host", "plan"}) {
      if (target == TargetKind::kCpu && std::string(form) == "plan") continue;
      const Speed speed = measure_speed(standing, form, kRounds);
      std::string parts;
      for (const auto& [name, values] : speed.parts) {
        parts += (parts.empty() ? "" : ", ") + name.substr(9) + " " + number(median(values), 3);
      }
      std::printf("| %s | %s | %.1f | %.1f | %.1f | %s | %s | %d | %.0f |\n", size.name, form,
                  median(speed.total), median(speed.compile), median(speed.evaluate), parts.c_str(),
                  human_us(speed.timing.median_us).c_str(), speed.timing.samples, prepared_ms);
      std::fflush(stdout);
    }
  }
  std::printf("%s", machine.c_str());
  return 0;
}

int usage() {
  std::fprintf(stderr,
               "usage: bench_evaluation repeat|same|endurance|speed cpu|cuda [N] [US]\n"
               "  same [TRIALS [5|50 [SECONDS]]], endurance [N [SECONDS]], speed [full]\n");
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return usage();
  std::setvbuf(stdout, nullptr, _IOLBF, 0);  // keep results when a run is cut short
  const std::string command = argv[1];
  const auto target = target_from_name(argv[2]);
  if (!target) return usage();
  const int n = argc > 3 ? std::atoi(argv[3]) : 0;
  if (command == "once") return once(*target, n);
  if (command == "repeat") return repeat(*target);
  if (command == "same") {
    return same(*target, n > 0 ? n : 200, argc > 4 ? std::atoi(argv[4]) : 50,
                argc > 5 ? std::atof(argv[5]) : 1e9);
  }
  if (command == "endurance") {
    return endurance(*target, n > 0 ? n : 1000, argc > 4 ? std::atof(argv[4]) : 1e9);
  }
  if (command == "speed") return speed(*target, argc > 3 && std::string(argv[3]) == "full");
  return usage();
}
