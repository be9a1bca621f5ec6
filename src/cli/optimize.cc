// SPDX-License-Identifier: Apache-2.0
#include <cstdio>

#include "base/files.h"
#include "base/json.h"
#include "cli/commands.h"
#include "cli/display.h"
#include "cli/live.h"
#include "cli/tasks.h"
#include "run/choices.h"
#include "run/proposers.h"
#include "run/store/fact_file.h"
#include "run/store/tool_record.h"
#include "search/parameters.h"
#include "search/searches.h"
#include "task/open/open_task.h"
#include "write/model/apis.h"

namespace kernelpro {

namespace {

constexpr OptionSpec kOptimizeOptions[] = {
    kTaskOption,
    {"--target", "TARGET", "auto", "Where candidates run.", false, "auto|cpu|cuda"},
    {"--run", "DIR", "", "Run folder; by default a new one under runs/."},
    {"--proposer", "NAME", kTunerName, "What writes candidates; --model selects model.", false, "",
     proposer_names},
    {"--from", "RUN", "", "With --proposer replay: the run to replay."},
    {"--search", "NAME", "",
     "How to choose the next parent; by default the preset's search, else mcts.", false, "",
     search_names},
    {"--preset", "NAME", "default",
     "Search parameters: KernelPro's own, its paper's, or those of Stanford's multi-branch search.",
     false, "", preset_names},
    {"--objective", "KIND", "time", "What to minimize.", false, "", nullptr, objective_help},
    {"--evaluations", "N", "",
     "Stop after N evaluated candidates: 60, or the preset's number; no limit for a sweep."},
    {"--seconds", "S", "", "Stop after S seconds of run time: 600; no limit for a sweep."},
    {"--near-ceiling", "F", "",
     "Stop when the best reaches this fraction of the ceiling: 0.95; never for a sweep."},
    {"--plateau", "N", "0", "Stop after N evaluations without improvement; 0 means never."},
    {"--least-gain", "F", "0.005",
     "With models: stop when the next evaluation is expected to gain less than this; 0 means "
     "never."},
    {"--timeout", "S", "30", "Time limit for one call of a candidate, in seconds."},
    {"--seed", "N", "1", "Seed of the search's choices; inputs are drawn anew in each process."},
    {"--start", "FILE", "", "Kernel to start from instead of the task's own."},
    {"--start-from", "RUN...", "",
     "Also try a run's best kernel, or a task folder's kernel, right after the start."},
    {"--model", "SPEC", "", "Model that writes kernels.", false, "", nullptr, model_forms},
    {"--planner", "SPEC", "", "Use another model for ideas."},
    {"--coder", "SPEC", "", "Use another model for sources."},
    {"--fixer", "SPEC", "", "Use another model for repairs."},
    {"--one-call", "", "", "Ask for idea and source in one call, without a planner."},
    {"--ideas", "N", "3", "Ideas to ask for at a time, per parent."},
    {"--fixes", "N", "2", "Repair attempts for a source that failed."},
    {"--tune", "N", "8",
     "Knob settings to try of each source that a writer gives; of the best, twice as many."},
    {"--tool-rounds", "N", "8", "Rounds of code look-ups that a model may use per answer."},
    {"--max-tokens", "N", "0", "Stop when models have used N tokens; 0 means no limit."},
    {"--max-usd", "X", "0", "Stop when models have cost X US dollars; 0 means no limit."},
    {"--max-calls", "N", "0", "Stop after N requests to models; 0 means no limit."},
    {"--feedback", "KIND", "diagnosed",
     "What writers see: the time alone, every raw metric, or the diagnosis.", false,
     "none|raw|diagnosed"},
    {"--language", "NAME", "",
     "What writers write; by default C++ or CUDA C++. Python (torch, triton, cute-dsl) is for "
     "PyTorch files.",
     false, "", dialect_names},
    {"--prompts", "DIR", "", "Folder of prompts that replace built-in ones of the same name."},
    {"--policy", "NAME", "contract", "Rules by which results are judged.", false,
     "contract|kernelbench"},
    kPrecisionOption,
    kSetOption,
    {"--gpu", "ID...", "",
     "GPU by index or UUID; the first by default. Several (0,1 or all) measure in parallel."},
    kStationOption,
    kPythonOption,
    kIncludeOption,
    {"--exchange-wait", "S", "3600", "With --proposer exchange: seconds to wait for a reply."},
    profile_option("full"),
    {"--profile-each", "", "",
     "Time and profile every correct candidate in full, not only those that may be the best."},
    {"--no-record", "", "", "Neither read nor update the record of past findings and the memory."},
    {"--no-memory", "", "", "Show writers only the parent, nothing else that was tried."},
    {"--open", "", "",
     "Show the run on the live page while it goes: print the link, open a browser."},
    {"--json", "", "", "Print one JSON object per line."},
};

// Starts a server for the folder of the run, or finds it. Without one the run goes on all the same.
void open_page(const std::string& directory, bool json) {
  const auto server = find_live_server(dirname(absolute(directory)));
  if (!server) {
    std::fprintf(stderr, "kernelpro: %s\n  next: %s\n", server.error().message.c_str(),
                 server.error().next.c_str());
    return;
  }
  const std::string link = live_link(*server, directory);
  if (json) {
    std::printf("%s\n", dump_json({{"event", "page"}, {"link", link}}).c_str());
  } else {
    std::printf("live page: %s\n", link.c_str());
  }
  std::fflush(stdout);
  show_link(link);
}

// Target of a PyTorch file: from the starting kernel's extension, otherwise cuda if available.
TargetKind module_target(const Options& options, const Host& host) {
  const std::string name = options.text("--target"), start = options.text("--start");
  if (!target_from_name(name) && !start.empty()) {
    const LanguageRow* language = language_of_file(start);
    return language != nullptr ? language->target : TargetKind::kCpu;
  }
  return require(choose_target(host, nullptr, name));
}

// A sweep covers the whole space; options override its lack of limits.
// All candidates share one source, so probes would repeat the same results.
void read_sweep(const Options& options, RunSettings* settings) {
  settings->probes = false;
  if (!options.has("--evaluations")) settings->max_evaluations = 0;  // 0 = no limit
  if (!options.has("--seconds")) settings->max_seconds = 0;
  if (!options.has("--near-ceiling")) settings->near_ceiling = 0;
}

int run_optimize(const Options& options) {
  const std::string path = options.text("TASK");
  OpenSettings open = read_open_settings(options);
  open.start = options.text("--start");
  const Host host = require(Host::of(read_stations(options)));
  if (is_module_path(path)) open.target = module_target(options, host);
  open.cpu_only = target_from_name(options.text("--target")) == TargetKind::kCpu;
  RunSettings settings = read_run_settings(options, host);
  open.gpu = settings.gpu;
  settings.python = open.python;
  OpenedTask opened = require(host.open(path, open));
  const Task& task = opened.task;
  settings.replay_from = options.text("--from");
  if (proposer_of(settings).replays && settings.replay_from.empty()) {
    throw Fatal({ErrorKind::kBadInput, "--proposer replay needs a run to replay",
                 "name it with --from RUN"});
  }
  if (!proposer_of(settings).replays && !settings.replay_from.empty()) {
    throw Fatal({ErrorKind::kBadInput,
                 "--from names a run to replay, but the proposer is " + settings.proposer,
                 "add --proposer replay, or leave --from out"});
  }
  if (!options.flag("--no-record")) {
    settings.record = absolute(user_record_path());
    settings.facts = absolute(user_facts_path());
  }
  settings.target = is_module_path(path)
                        ? open.target
                        : require(choose_target(host, &task, options.text("--target")));
  refuse_gpu_on_cpu(options, settings.target);
  settings.directory =
      options.has("--run") ? options.text("--run") : new_run_directory(task, settings.target);
  const bool json = options.flag("--json");
  refuse_unsound(task, settings, options);
  stop_on_signals();  // whoever reads the folder's name may stop the run
  announce_run(settings, task, opened.notes, json);
  if (options.flag("--open")) open_page(settings.directory, json);
  const auto result = optimize(task, settings, make_display(display_kind(json, stdout), stdout),
                               std::move(opened.module));
  if (!result && !options.has("--run")) drop_run_directory(settings.directory);
  return finish_run(settings.directory, result, json);
}

}  // namespace

RunSettings read_run_settings(const Options& options, const Host& host) {
  RunSettings settings;
  settings.stations = read_stations(options);
  settings.policy = policy_from_name(options.text("--policy")).value_or(Policy::kContract);
  settings.gpus = read_gpus(options, host);
  if (!settings.gpus.empty()) settings.gpu = settings.gpus.front();
  if (settings.gpus.size() < 2) settings.gpus.clear();
  settings.proposer = options.text("--proposer");
  const auto objective = objective_from_text(options.text("--objective"));
  if (!objective) {
    throw Fatal({ErrorKind::kBadInput, "there is no objective " + options.text("--objective"),
                 "choose one: " + objective_help()});
  }
  settings.objective = *objective;
  read_budgets(options, &settings);
  if (proposer_of(settings).exhaustive &&
      (options.has("--search") || options.text("--preset") != RunSettings().preset)) {
    throw Fatal({ErrorKind::kBadInput, "a sweep measures every setting, so no search chooses",
                 "leave --search and --preset out, or choose another --proposer"});
  }
  settings.search = options.text("--search");
  settings.preset = options.text("--preset");
  const Preset& preset = *require(find_preset(settings.preset));
  if (!options.has("--evaluations") && preset.evaluations > 0) {
    settings.max_evaluations = preset.evaluations;
  }
  settings.timeout_s = read_timeout(options);
  settings.seed = static_cast<std::uint64_t>(options.integer("--seed"));
  settings.counters = counter_set_from_name(options.text("--profile")).value_or(CounterSet::kOff);
  settings.profile_each = options.flag("--profile-each");
  if (proposer_of(settings).exhaustive) read_sweep(options, &settings);
  settings.least_gain = options.real("--least-gain");
  settings.memory = !options.flag("--no-memory");
  settings.exchange_wait_s = options.real("--exchange-wait");
  settings.include_dirs = read_include_dirs(options);
  read_writers(options, &settings);
  return settings;
}

extern const Subcommand kOptimize{"optimize", "Search for a faster, verified kernel for a task.",
                                  kOptimizeOptions, run_optimize};

}  // namespace kernelpro
