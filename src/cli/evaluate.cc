// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <set>

#include "base/clock.h"
#include "base/files.h"
#include "base/input.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/tasks.h"
#include "cli/verdict.h"
#include "measure/remote/stations.h"
#include "run/choices.h"
#include "run/evaluate_one.h"
#include "task/open/open_task.h"

namespace kernelpro {

namespace {

constexpr OptionSpec kEvaluateOptions[] = {
    kTaskOption,
    {"KERNEL", "FILE...", "", "Kernel sources; - reads one from standard input.", true, "", nullptr,
     language_files},
    {"--language", "NAME", "",
     "Language of the source on standard input; by default the target's own.", false, "",
     language_names},
    {"--target", "TARGET", "auto", "Where kernels run; auto decides by file extension.", false,
     "auto|cpu|cuda"},
    {"--knob", "NAME=VALUE...", "", "Value of a knob; by default the first in its list."},
    {"--against", "FILE", "", "Kernel to compare with; by default the task's starting kernel."},
    {"--policy", "NAME", "contract", "Rules by which results are judged.", false,
     "contract|kernelbench"},
    kPrecisionOption,
    kSetOption,
    {"--no-probes", "", "", "Skip the probes: other values of the same shapes."},
    {"--no-timing", "", "",
     "Check correctness only, on two input sets: no times, evidence or diagnosis."},
    {"--redraw", "", "", "Draw new inputs for each kernel instead of reusing them (GPU)."},
    {"--baselines", "", "", "Also time PyTorch: eager, compiled, and as a CUDA graph."},
    {"--energy", "", "",
     "Also measure the energy of a call, and of the kernel compared with; takes 10 s."},
    profile_option("off"),
    {"--gpu", "ID...", "", "GPU by index or UUID; several are used in parallel."},
    {"--jobs", "N", "0", "Parallel compilations; 0 means one per core."},
    {"--timeout", "S", "30", "Time limit for one call, in seconds."},
    kStationOption,
    kPythonOption,
    kIncludeOption,
    {"--json", "", "", "Print JSON: an object for one kernel, an array for several."},
};

KernelFile read_piped_kernel(const Options& options, const Host& host) {
  KernelFile kernel;
  kernel.path = "standard input";
  const auto named = language_from_name(options.text("--language"));
  kernel.language = named.value_or(
      native_language(require(choose_target(host, nullptr, options.text("--target")))).language);
  kernel.source =
      require(read_input(kMaxSource, "pipe a kernel into it, or name a file instead of -"));
  return kernel;
}

std::vector<KernelFile> read_kernels(const Options& options, const Host& host) {
  const std::vector<std::string> files = lines(options.text("KERNEL"));
  const auto piped = std::count(files.begin(), files.end(), "-");
  if (piped > 1) {
    throw Fatal({ErrorKind::kBadInput, "standard input holds one kernel, but - was given twice",
                 "write the others to files"});
  }
  if (piped == 0 && options.has("--language")) {
    throw Fatal({ErrorKind::kBadInput, "--language is for a source on standard input",
                 "leave it out: a file's extension determines its language"});
  }
  std::vector<KernelFile> kernels;
  for (const std::string& file : files) {
    kernels.push_back(file == "-" ? read_piped_kernel(options, host) : read_kernel(file));
    kernels.back().knobs = read_pairs(options, "--knob");
  }
  return kernels;
}

TargetKind target_of(const Options& options, const Host& host,
                     const std::vector<KernelFile>& kernels) {
  if (const auto target = target_from_name(options.text("--target"))) return *target;
  return target_of_kernels(host, kernels);
}

void check_languages(TargetKind target, const std::vector<KernelFile>& kernels) {
  for (const KernelFile& kernel : kernels) {
    const LanguageRow& row = language_row(kernel.language);
    if (!row.compiled || row.target == target) continue;
    throw Fatal({ErrorKind::kBadInput,
                 kernel.path + " cannot run on the " + std::string(target_name(target)) + " target",
                 "leave --target out: the file's extension determines it"});
  }
}

void refuse_what_needs_times(const Options& options) {
  std::string wanted;
  for (const char* flag : {"--energy", "--baselines"}) {
    if (options.flag(flag)) wanted = flag;
  }
  if (options.has("--against")) wanted = "--against";
  if (counter_set_from_name(options.text("--profile")).value_or(CounterSet::kOff) !=
      CounterSet::kOff) {
    wanted = "--profile";
  }
  if (wanted.empty()) return;
  throw Fatal({ErrorKind::kBadInput, wanted + " needs a timed kernel",
               "leave out --no-timing or " + wanted});
}

EvaluateManySettings read_settings(const Options& options, const Host& host, TargetKind target) {
  EvaluateManySettings settings;
  settings.station.stations = read_stations(options);
  settings.station.target = target;
  settings.station.timeout_s = read_timeout(options);
  refuse_gpu_on_cpu(options, target);
  settings.station.policy = policy_from_name(options.text("--policy")).value_or(Policy::kContract);
  settings.station.probes = !options.flag("--no-probes");
  settings.station.redraw = options.flag("--redraw");
  settings.station.timing = !options.flag("--no-timing");
  if (!settings.station.timing) refuse_what_needs_times(options);
  if (options.flag("--energy")) settings.station.objective = kLeastEnergy;
  settings.station.counters =
      counter_set_from_name(options.text("--profile")).value_or(CounterSet::kOff);
  settings.station.python = options.text("--python");
  settings.station.include_dirs = read_include_dirs(options);
  settings.station.jobs = options.small("--jobs", 0, 10000);
  settings.last = true;
  settings.station.gpus = read_gpus(options, host);
  if (!settings.station.gpus.empty()) settings.station.gpu = settings.station.gpus.front();
  if (options.has("--against")) settings.against = read_kernel(options.text("--against"));
  if (options.flag("--baselines")) settings.baselines.emplace();
  return settings;
}

int run_evaluate(const Options& options) {
  const double began = real_clock().now_s();
  const std::string path = options.text("TASK");
  if (!exists(find_task(path))) {
    throw Fatal({ErrorKind::kBadInput, "there is no task " + path,
                 "name a folder with a task.toml, or a PyTorch file"});
  }
  const Host host = require(Host::of(read_stations(options)));
  const std::vector<KernelFile> kernels = read_kernels(options, host);
  const TargetKind target = target_of(options, host, kernels);
  check_languages(target, kernels);
  const EvaluateManySettings settings = read_settings(options, host, target);
  OpenSettings open = read_open_settings(options);
  open.target = target;
  open.cpu_only = target == TargetKind::kCpu;
  open.gpu = settings.station.gpu;
  const bool native = std::any_of(kernels.begin(), kernels.end(), [](const KernelFile& kernel) {
    return language_row(kernel.language).compiled;
  });
  ModulesAhead modules;
  if (is_module_path(path)) {
    modules.candidates = static_cast<int>(std::count_if(
        kernels.begin(), kernels.end(),
        [](const KernelFile& kernel) { return language_row(kernel.language).in_python; }));
    modules.folder = dirname(absolute(path));
  }
  const ToolsAhead tools =
      host.here() ? begin_tools(settings.station, native, modules) : ToolsAhead();
  OpenedTask opened = require(host.open(path, open));
  const double open_ms = 1000 * (real_clock().now_s() - began);

  VerdictContext context;
  context.against = options.has("--against") ? options.text("--against") : "the starting kernel";
  context.task = &opened.task;
  context.target = target;
  context.policy = settings.station.policy;
  context.notes = opened.notes;
  const bool json = options.flag("--json");
  std::set<std::size_t> shown;
  const auto show = [&](std::size_t i, const EvaluateOneResult& result) {
    if (json) return;
    VerdictContext its = context;
    its.kernel = kernels[i].path;
    const char* gap = shown.empty() ? "" : "\n";
    const bool anew = !shown.insert(i).second;
    const std::string text = anew ? diagnosed_anew_text(its, result) : verdict_text(its, result);
    std::printf("%s%s", gap, text.c_str());
    std::fflush(stdout);
  };
  std::vector<EvaluateOneResult> results = require(evaluate_many(
      opened.task, kernels, settings, show, stations_anywhere(std::move(opened.module), tools)));

  bool all_correct = true;
  Json array = Json::array();
  for (std::size_t i = 0; i < results.size(); ++i) {
    EvaluateOneResult& result = results[i];
    all_correct &= result.evaluation.correct() != nullptr;
    if (!json) continue;
    result.phases_ms["open"] = open_ms;
    result.phases_ms["total"] = 1000 * (real_clock().now_s() - began);
    context.kernel = kernels[i].path;
    array.push_back(verdict_json(context, result));
  }
  if (json) std::printf("%s\n", dump_json(array.size() == 1 ? array[0] : array, 2).c_str());
  return all_correct ? 0 : 1;
}

}  // namespace

extern const Subcommand kEvaluate{"evaluate", "Check, time and diagnose kernels.", kEvaluateOptions,
                                  run_evaluate};

}  // namespace kernelpro
