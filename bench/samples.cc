// SPDX-License-Identifier: Apache-2.0
// Program-counter samples of kernels as the worker collects them, compared with Nsight Compute's
// source counters: the three lines at which warps most often wait while nothing is issued.
//   bench_samples OUT TASK/KERNEL.cu...
//   bench_samples --ours OUT TASK/KERNEL.cu...       without ncu
//   bench_samples --places NAME.samples.json NAME.cubin KERNEL.cu
// The folder that holds the kernel, or one above it, is the task: task.toml or task.py. Prints a
// table; writes the samples (NAME.samples.json), the code (NAME.cubin) and ncu's page
// (NAME.ncu.csv) to OUT. --places prints what is made of samples, by kernel. Exit status 1 when a
// kernel could not be sampled or fewer than 90 % of the comparisons agree.
#include "core/evidence/samples.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/cuda_toolkit.h"
#include "base/files.h"
#include "base/json.h"
#include "base/process/subprocess.h"
#include "base/process/worker_path.h"
#include "base/text.h"
#include "core/candidate/knobs.h"
#include "core/evidence/places_json.h"
#include "evaluation/standing.h"
#include "measure/cuda/replay.h"
#include "profile/code/disassemble.h"
#include "profile/import/ncu_source.h"
#include "profile/places/places.h"
#include "profile/sass/sass.h"
#include "task/open/open_task.h"

namespace {

using namespace kernelpro;
using namespace kernelpro::bench;

constexpr std::size_t kTop = 3;

double total(const KernelSamples& kernel) {
  double sum = 0;
  for (const PcSamples& pc : kernel.pcs) {
    for (const StallSamples& stall : pc.stalls) sum += stall.all;
  }
  return sum;
}

const KernelSamples* hottest(const SampleAnswers& answers) {
  const auto most = std::max_element(
      answers.kernels.begin(), answers.kernels.end(),
      [](const KernelSamples& a, const KernelSamples& b) { return total(a) < total(b); });
  return most == answers.kernels.end() ? nullptr : &*most;
}

// "kernel.cu:12" by offset, or "+0x40" where there is no line.
std::string line_at(const SassFunction* function, int offset) {
  if (function != nullptr) {
    for (const SassInstruction& instruction : function->code) {
      if (instruction.address != static_cast<unsigned long long>(offset)) continue;
      if (instruction.file < 0) break;
      return function->files[static_cast<std::size_t>(instruction.file)] + ":" +
             std::to_string(instruction.line);
    }
  }
  char text[16];
  std::snprintf(text, sizeof text, "+%#x", static_cast<unsigned>(offset));
  return text;
}

// The lines with the most exposed samples.
std::vector<std::string> top_lines(const KernelSamples& kernel, const SassFunction* function) {
  std::map<std::string, double> lines;
  for (const PcSamples& pc : kernel.pcs) {
    double& at = lines[line_at(function, pc.offset)];
    for (const StallSamples& stall : pc.stalls) at += stall.exposed;
  }
  std::vector<std::pair<double, std::string>> ranked;
  for (const auto& [line, samples] : lines) ranked.emplace_back(-samples, line);
  std::sort(ranked.begin(), ranked.end());
  std::vector<std::string> top;
  for (std::size_t i = 0; i < std::min(kTop, ranked.size()); ++i) top.push_back(ranked[i].second);
  return top;
}

// ncu's source page of one call; the text says why where it failed.
std::string ncu_page(const Standing& standing, const Subject& subject, std::size_t at) {
  const auto call = standing.target.evaluator->call_facts(subject, at);
  const std::string ncu = find_cuda_tool("ncu");
  if (!call || ncu.empty()) return call ? "ncu is not installed" : "there is no plan";
  const Case& c = *cases_for(standing.task, TargetKind::kCuda)[at];
  const TempDir folder;
  const std::string replay = join(folder.path(), "replay.json");
  const std::string report = join(folder.path(), "report.ncu-rep");
  must(write_replay(replay, subject.binaries[at], call->plan, call->layout,
                    judge_tensors(standing.task, c, Policy::kContract, true)));
  Command profile;
  profile.argv = {ncu,
                  "--section",
                  "SourceCounters",
                  "--profile-from-start",
                  "off",
                  "--clock-control",
                  "none",
                  "--launch-count",
                  "16",
                  "--export",
                  report,
                  must(worker_path()),
                  "cuda-replay",
                  replay};
  profile.limits.wall_seconds = 60;
  const Exit profiled = must(run(profile));
  if (!profiled.ok()) return profiled.output;
  Command print;
  print.argv = {ncu, "--import", report, "--page", "source", "--csv", "--print-source", "sass"};
  print.env = {"LC_ALL=C"};
  print.limits.output_kept = print.limits.output_killed = 256 << 20;
  return must(run(print)).output;
}

struct Tally {
  int compared = 0, agreed = 0, failed = 0;
};

bool is_task(const std::string& folder) {
  return exists(join(folder, "task.toml")) || exists(join(folder, "task.py"));
}

void compare(const std::string& kernel, const std::string& out, bool with_ncu, Tally* tally) {
  std::string folder = dirname(kernel);
  if (!is_task(folder)) folder = dirname(folder);
  const std::string name =
      replace_all(folder.substr(folder.rfind('/') + 1) + "-" + basename(kernel), ".cu", "");
  OpenSettings open;
  open.target = TargetKind::kCuda;
  const std::string module = join(folder, "task.py");
  const Standing standing(must(open_task(exists(module) ? module : folder, open)).task,
                          TargetKind::kCuda, 60);
  const std::string source = must(read_file(kernel));
  const KnobValues knobs = default_values(must(parse_knobs(source)));
  const Subject subject = standing.subject({Language::kCuda, source, knobs, {}});
  const Evaluation evaluation = standing.evaluate(subject, nullptr);
  const Correct& correct = correct_or_give_up(evaluation);
  const auto longest =
      std::max_element(correct.timings.begin(), correct.timings.end(),
                       [](const Timing& a, const Timing& b) { return a.median_us < b.median_us; });
  const std::vector<const Case*> cases = cases_for(standing.task, TargetKind::kCuda);
  std::size_t at = 0;
  while (at + 1 < cases.size() && cases[at]->name != longest->case_name) ++at;

  double ms[2] = {};
  SampleAnswers ours;
  for (double& each : ms) {
    const double start = real_clock().now_s();
    ours = standing.target.evaluator->sample(subject, at);
    each = (real_clock().now_s() - start) * 1e3;
  }
  must(write_file(join(out, name + ".samples.json"), sample_answers_to_json(ours) + "\n"));
  const KernelSamples* mine = hottest(ours);
  if (mine == nullptr) {
    ++tally->failed;
    std::printf("| %s | %s |\n", name.c_str(),
                ours.missing.empty() ? "no samples" : ours.missing[0].reason.c_str());
    return;
  }
  must(write_file(join(out, name + ".cubin"), must(read_file(subject.binaries[at].cubin))));
  const auto code = disassemble_cubin(subject.binaries[at].cubin);
  const auto functions = code ? parse_sass(code->text) : std::vector<SassFunction>();
  const auto function =
      std::find_if(functions.begin(), functions.end(),
                   [&](const SassFunction& each) { return each.name == mine->function; });
  const SassFunction* sass = function == functions.end() ? nullptr : &*function;
  const std::vector<std::string> top = top_lines(*mine, sass);
  const std::string page = with_ncu ? ncu_page(standing, subject, at) : "";
  if (with_ncu) must(write_file(join(out, name + ".ncu.csv"), page));
  const NcuSourcePage theirs = read_ncu_source_page(page);
  std::string other = "no samples", same = "-";
  if (const KernelSamples* their = hottest(theirs.samples)) {
    const std::vector<std::string> lines = top_lines(*their, sass);
    const bool agree = std::set(top.begin(), top.end()) == std::set(lines.begin(), lines.end());
    other = join_text(lines, ", ");
    same = agree ? "yes" : "NO";
    ++tally->compared;
    tally->agreed += agree ? 1 : 0;
  }
  std::printf("| %s | %.0f us | %.0f | %.0f | %.0f, %.0f ms | %s | %s | %s |\n", name.c_str(),
              longest->median_us, total(*mine), ours.dropped, ms[0], ms[1],
              join_text(top, ", ").c_str(), other.c_str(), same.c_str());
  std::fflush(stdout);
}

int print_places(const std::string& recorded, const std::string& cubin, const std::string& kernel) {
  const auto samples = sample_answers_from_json(must(read_file(recorded)));
  const std::vector<SassFunction> functions = parse_sass(must(disassemble_cubin(cubin)).text);
  Json all = Json::object();
  for (const SassFunction& function : functions) {
    for (const KernelSamples& each : samples ? samples->kernels : std::vector<KernelSamples>()) {
      if (each.function != function.name) continue;
      const Places places = sampled_places(function, each, lines_in(dirname(kernel)));
      all[function.name] = places_to_json(places);
      all[function.name]["fit"] = places_fit(function, each);
    }
  }
  std::printf("%s\n", dump_json(all).c_str());
  return samples ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> words(argv + 1, argv + argc);
  if (words.size() == 4 && words[0] == "--places") {
    return print_places(words[1], words[2], words[3]);
  }
  const bool ours = !words.empty() && words[0] == "--ours";
  if (ours) words.erase(words.begin());
  if (words.size() < 2) {
    std::fprintf(stderr, "usage: bench_samples [--ours] OUT TASK/KERNEL.cu...\n");
    return 2;
  }
  std::printf(
      "| kernel | call | samples | dropped | cost: first, again | exposed waits, ours | ncu's | "
      "same |\n|---|---|---|---|---|---|---|---|\n");
  Tally tally;
  for (std::size_t i = 1; i < words.size(); ++i) compare(words[i], words[0], !ours, &tally);
  std::printf("\n%d of %d agree; %d not sampled. %s\n", tally.agreed, tally.compared, tally.failed,
              utc_now().c_str());
  return tally.failed == 0 && 10 * tally.agreed >= 9 * tally.compared ? 0 : 1;
}
