// SPDX-License-Identifier: Apache-2.0
#include "endurance.h"

#include <dirent.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/process/processes.h"
#include "base/text.h"
#include "machine/gpu_watch.h"
#include "standing.h"

namespace kernelpro::bench {

namespace {

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

}  // namespace

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

}  // namespace kernelpro::bench
