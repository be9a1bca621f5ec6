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
#include <dirent.h>
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
#include "base/process/processes.h"
#include "base/process/subprocess.h"
#include "base/statistics/statistics.h"
#include "base/text.h"
#include "machine/gpu_watch.h"
#include "measure/station/target.h"

namespace {

using namespace kernelpro;

[[noreturn]] void give_up(const Error& error) {
  std::fprintf(stderr, "bench_evaluation: %s\n", error.text().c_str());
  std::exit(static_cast<int>(error.kind));
}

template <class T>
T must(Result<T> result) {
  if (!result) give_up(result.error());
  return std::move(*result);
}
void must(const Result<void>& result) {
  if (!result) give_up(result.error());
}

// ---- the task: y = x where that is positive, else x / 4; elementwise, N elements ----

Task leaky_task(std::int64_t n) {
  Task task;
  task.name = "leaky";
  Tensor x;
  x.name = "x";
  x.shape = {"N"};
  Tensor y = x;
  y.name = "y";
  y.role = Role::kOutput;
  task.tensors = {x, y};
  Case c;
  c.name = "only";
  c.dims = {{"N", n}};
  c.timed = true;
  task.cases = {c};
  task.reference_cpp =
      "#include \"task.h\"\n"
      "extern \"C\" void reference(const ReferenceArgs& a) {\n"
      "  for (long long i = 0; i < N; ++i) a.y[i] = a.x[i] > 0 ? a.x[i] : 0.25 * a.x[i];\n"
      "}\n";
  // One core would take minutes: use only the GPU reference.
  if (n > (1 << 28)) task.reference_cpp.clear();
  task.reference_cu =
      "#include \"task.h\"\n"
      "__global__ void leaky(const float* x, double* y) {\n"
      "  const long long i = 1ll * blockIdx.x * 256 + threadIdx.x;\n"
      "  if (i < N) y[i] = x[i] > 0 ? x[i] : 0.25 * x[i];\n"
      "}\n"
      "extern \"C\" void reference(const ReferenceArgs& a, cudaStream_t stream) {\n"
      "  leaky<<<(N + 255) / 256, 256, 0, stream>>>(a.x, a.y);\n"
      "}\n";
  return task;
}

constexpr const char* kDeviceCode =
    "#include \"task.h\"\n"
    "__device__ inline float leak(float v) { return v > 0 ? v : 0.25f * v; }\n"
    "__global__ void __launch_bounds__(256) leaky(const float* x, float* y) {\n"
    "  const long long i = 1ll * blockIdx.x * 256 + threadIdx.x;\n"
    "  if (i >= N / 4) return;\n"
    "  const float4 v = reinterpret_cast<const float4*>(x)[i];\n"
    "  reinterpret_cast<float4*>(y)[i] = {leak(v.x), leak(v.y), leak(v.z), leak(v.w)};\n"
    "  BODY\n"
    "}\n";
constexpr const char* kPlanForm =
    "KP_LAUNCH(leaky, kp::dim((N / 4 + 255) / 256), kp::dim(256), 0, arg::x, arg::y)\n";
constexpr const char* kHostForm =
    "extern \"C\" void launch(const Args& a, cudaStream_t stream) {\n"
    "  leaky<<<(N / 4 + 255) / 256, 256, 0, stream>>>(a.x, a.y);\n"
    "}\n";
constexpr const char* kCpuCode =
    "#include \"task.h\"\n"
    "extern \"C\" int fork();\n"
    "extern \"C\" void launch(const Args& a) {\n"
    "#pragma omp parallel for if (N > 200000)\n"
    "  for (long long i = 0; i < N; ++i) a.y[i] = a.x[i] > 0 ? a.x[i] : 0.25f * a.x[i];\n"
    "  BODY\n"
    "}\n";

std::string with_body(std::string source, const std::string& body) {
  const std::size_t at = source.find("BODY");
  return source.replace(at, 4, body);
}

// A kernel for the task; `body` runs after it has written its results, `note` only makes the text
// unique.
Candidate kernel(TargetKind target, const std::string& form, const std::string& body,
                 const std::string& note) {
  Candidate candidate;
  const bool cpu = target == TargetKind::kCpu;
  candidate.language = cpu ? Language::kCpp : Language::kCuda;
  candidate.source = with_body(cpu ? kCpuCode : kDeviceCode, body);
  if (!cpu) candidate.source += form == "host" ? kHostForm : kPlanForm;
  candidate.source += "// " + note + "\n";
  return candidate;
}

// Standby worker processes for a long series of evaluations.
constexpr int kManyWorkers = 8;

// A prepared evaluator with its task; `task` must not move.
struct Standing {
  Standing(Task given, TargetKind kind, double timeout_s, int standby = 1)
      : task(std::move(given)) {
    settings.target = kind;
    settings.timeout_s = timeout_s;
    settings.standby = standby;
    target = must(make_target(task, settings));
    must(target.evaluator->prepare());
  }
  std::variant<Subject, CompileError> build(const Candidate& candidate) const {
    double compile_ms = 0;
    return must(kernelpro::build(task, settings.target, *target.compiler, candidate, &compile_ms));
  }
  Subject subject(const Candidate& candidate) const {
    auto built = build(candidate);
    if (const auto* error = std::get_if<CompileError>(&built)) {
      give_up({ErrorKind::kInternal, "the bench's own kernel does not compile:\n" + error->log,
               "correct bench/evaluation.cc"});
    }
    return std::get<Subject>(std::move(built));
  }
  Evaluation evaluate(const Subject& candidate, const Subject* incumbent) const {
    return must(target.evaluator->evaluate(candidate, incumbent));
  }
  Task task;
  RunSettings settings;
  Target target;
};

const Correct& correct_or_give_up(const Evaluation& evaluation) {
  const Correct* correct = evaluation.correct();
  if (correct == nullptr) {
    give_up({ErrorKind::kInternal,
             "the bench's own kernel failed: " + outcome_summary(evaluation.outcome),
             "run it again, or report this"});
  }
  return *correct;
}

// Number of elements for a call of about `us` microseconds.
std::int64_t elements_for(TargetKind target, int us) {
  if (target == TargetKind::kCuda) return us <= 5 ? 1 << 20 : 32 << 20;
  return us <= 5 ? 16 << 10 : 1 << 20;
}

std::string machine_line(const Target& target) {
  return "\nmachine: " + target.machine->name +
         (target.machine->versions.empty() ? "" : ", " + target.machine->versions) + "; " +
         utc_now() + "\n";
}

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

// ---- endurance ----

struct Kind {
  const char* name;
  const char* wanted;  // outcome_name
  const char* cpu;     // body; null: not on this target
  const char* cuda;
  const char* form;
  int weight;  // of 40
};

// A mix of candidates as in a search.
constexpr Kind kKinds[] = {
    {"good", "correct", "", "", "plan", 16},
    {"good, host form", "correct", nullptr, "", "host", 4},
    {"wrong", "wrong-result", "a.y[N / 2] += 1;", "if (i == 7) y[3 * i] += 1;", "plan", 9},
    {"crashing", "crashed", "*(volatile int*)nullptr = 1;", "if (i == 5) *(volatile float*)16 = 1;",
     "plan", 1},
    {"hanging", "timed-out", "for (;;) asm volatile(\"\");",
     "while (*(volatile float*)y != 12345.5f) {}", "plan", 1},
    {"rejected", "rejected", "for (;;) fork();", "((float*)x)[i] = 0;", "plan", 4},
    {"not compiling", "compile-error", "a.z[0] = 1;", "z[0] = 1;", "plan", 5},
};

struct Left {
  int children = 0, zombies = 0, descriptors = 0, memory_files = 0, shared_segments = 0;
  double resident_bytes = 0;
  double gpu_bytes = -1;  // unknown
};

std::vector<std::string> names_in(const char* folder) {
  std::vector<std::string> names;
  DIR* dir = ::opendir(folder);
  if (dir == nullptr) return names;
  const std::string own = std::to_string(::dirfd(dir));
  while (const dirent* entry = ::readdir(dir)) {
    if (entry->d_name[0] != '.' && entry->d_name != own) names.emplace_back(entry->d_name);
  }
  ::closedir(dir);
  return names;
}

Left look(TargetKind target) {
  Left left;
  // Wait for standby processes to create their contexts and for ended ones to release theirs.
  if (target == TargetKind::kCuda) ::usleep(2000000);
  const std::vector<ProcessInfo> all = all_processes();
  for (const ProcessInfo& p : all) {
    if (p.pid == ::getpid()) left.resident_bytes = static_cast<double>(p.resident_bytes);
  }
  for (const ProcessInfo& p : descendants(all, ::getpid())) {
    ++left.children;
    left.zombies += p.zombie ? 1 : 0;
  }
  for (const std::string& name : names_in("/proc/self/fd")) {
    char to[256] = {};
    const auto n = ::readlink(("/proc/self/fd/" + name).c_str(), to, sizeof to - 1);
    if (n <= 0) continue;
    ++left.descriptors;
    left.memory_files += std::string(to).starts_with("/memfd:") ? 1 : 0;
  }
  left.shared_segments = static_cast<int>(names_in("/dev/shm").size());
  if (target == TargetKind::kCuda) {
    if (const auto state = gpu_state("")) left.gpu_bytes = static_cast<double>(state->used_bytes);
  }
  return left;
}

struct Endured {
  std::map<std::string, std::map<std::string, int>> outcomes;  // by kind, by outcome
  int surprises = 0;
  std::vector<double> at, resident;  // number of evaluations, bytes after them
};

// Evaluates at most `n` candidates for at most `most_s` seconds; returns their number.
int endure(const Standing& standing, int n, double most_s, Endured* endured) {
  const bool cpu = standing.settings.target == TargetKind::kCpu;
  std::vector<const Kind*> mix;
  for (const Kind& kind : kKinds) {
    if ((cpu ? kind.cpu : kind.cuda) == nullptr) continue;
    mix.insert(mix.end(), static_cast<std::size_t>(kind.weight), &kind);
  }
  // The incumbent, so that pairs are timed as in a search.
  const Subject incumbent =
      standing.subject(kernel(standing.settings.target, "plan", "", "incumbent"));
  const double begun = real_clock().now_s();
  for (int i = 0; i < n; ++i) {
    if (real_clock().now_s() - begun > most_s) return i;
    // 23 is coprime to the length of the mix, so all kinds alternate.
    const Kind& kind = *mix[static_cast<std::size_t>(i) * 23 % mix.size()];
    const auto built = standing.build(
        kernel(standing.settings.target, kind.form, cpu ? kind.cpu : kind.cuda, kind.name));
    Outcome outcome;
    if (const auto* error = std::get_if<CompileError>(&built)) {
      outcome = *error;
    } else {
      outcome = standing.evaluate(std::get<Subject>(built), &incumbent).outcome;
    }
    ++endured->outcomes[kind.name][outcome_name(outcome)];
    if (outcome_name(outcome) != kind.wanted) {
      if (++endured->surprises <= 5) {
        std::fprintf(stderr, "%s: %s\n", kind.name, outcome_summary(outcome).c_str());
      }
    }
    if (i % std::max(1, n / 50) == 0) {
      endured->at.push_back(i);
      endured->resident.push_back(look(TargetKind::kCpu).resident_bytes);
    }
  }
  return n;
}

// Bytes per evaluation: least squares over the second half, after caches are full.
double slope(const Endured& endured) {
  double sx = 0, sy = 0, sxx = 0, sxy = 0, n = 0;
  for (std::size_t i = endured.at.size() / 2; i < endured.at.size(); ++i) {
    sx += endured.at[i];
    sy += endured.resident[i];
    sxx += endured.at[i] * endured.at[i];
    sxy += endured.at[i] * endured.resident[i];
    ++n;
  }
  const double d = n * sxx - sx * sx;
  return d > 0 ? (n * sxy - sx * sy) / d : 0;
}

int endurance(TargetKind target, int n, double most_s) {
  // A first evaluator makes the driver's and the process's permanent allocations.
  { const Standing first(leaky_task(elements_for(target, 5)), target, 0.5); }
  const Left outside = look(target);
  Left before, after;
  Endured endured;
  double growth = 0;
  std::string machine;
  const double start = real_clock().now_s();
  {
    const Standing standing(leaky_task(elements_for(target, 5)), target, 0.5, kManyWorkers);
    Endured first;
    endure(standing, 60, most_s, &first);  // every kind, and all one-time allocations
    before = look(target);
    n = endure(standing, n, most_s - (real_clock().now_s() - start), &endured);
    after = look(target);
    growth = slope(endured);
    machine = machine_line(standing.target);
  }
  const double seconds = real_clock().now_s() - start;
  // The evaluator is gone: so must be everything that it owned.
  const Left gone = look(target);

  std::printf("| candidate | evaluations | outcomes |\n|---|---|---|\n");
  for (const auto& [kind, outcomes] : endured.outcomes) {
    int total = 0;
    std::string text;
    for (const auto& [name, count] : outcomes) {
      total += count;
      text += (text.empty() ? "" : ", ") + std::to_string(count) + " " + name;
    }
    std::printf("| %s | %d | %s |\n", kind.c_str(), total, text.c_str());
  }
  std::printf(
      "\n| what | no evaluator yet | before | after %d evaluations | evaluator gone |\n"
      "|---|---|---|---|---|\n",
      n);
  const auto row = [&](const char* what, int Left::*count) {
    std::printf("| %s | %d | %d | %d | %d |\n", what, outside.*count, before.*count, after.*count,
                gone.*count);
  };
  row("child processes", &Left::children);
  row("zombies", &Left::zombies);
  row("open descriptors", &Left::descriptors);
  row("of them memory files", &Left::memory_files);
  row("files in /dev/shm", &Left::shared_segments);
  std::printf("| supervisor's memory | %s | %s | %s | %s |\n",
              human_bytes(outside.resident_bytes).c_str(),
              human_bytes(before.resident_bytes).c_str(), human_bytes(after.resident_bytes).c_str(),
              human_bytes(gone.resident_bytes).c_str());
  if (after.gpu_bytes >= 0) {
    std::printf("| GPU memory in use | %s | %s | %s | %s |\n",
                human_bytes(outside.gpu_bytes).c_str(), human_bytes(before.gpu_bytes).c_str(),
                human_bytes(after.gpu_bytes).c_str(), human_bytes(gone.gpu_bytes).c_str());
  }
  constexpr double kFlat = 1024;  // bytes per evaluation
  std::printf("\nsupervisor's growth: %.0f bytes an evaluation; %.1f s, %.0f ms an evaluation\n",
              growth, seconds, 1e3 * seconds / (n + 60));
  std::printf("%s", machine.c_str());
  const bool leaked = after.children > before.children || after.zombies > 0 ||
                      after.descriptors > before.descriptors ||
                      after.shared_segments > before.shared_segments ||
                      after.gpu_bytes > before.gpu_bytes || gone.children > outside.children ||
                      gone.descriptors > outside.descriptors ||
                      gone.gpu_bytes > outside.gpu_bytes || growth > kFlat;
  if (leaked) std::printf("something was left behind: NO\n");
  if (endured.surprises > 0) std::printf("%d unexpected outcomes: NO\n", endured.surprises);
  return leaked || endured.surprises > 0 ? 1 : 0;
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
