// SPDX-License-Identifier: Apache-2.0
#include "run/run.h"

#include <atomic>

#include "base/clock.h"
#include "base/mailbox.h"
#include "core/candidate/knobs.h"
#include "measure/remote/stations.h"
#include "run/facts.h"
#include "run/launch.h"
#include "run/loop.h"
#include "run/planted.h"
#include "run/proposers.h"
#include "run/run_end.h"
#include "run/seeds.h"
#include "run/standing.h"
#include "run/store/recorded.h"
#include "run/store/settings.h"
#include "run/store/store.h"
#include "run/store/tool_record.h"
#include "task/load/start.h"
#include "write/proposer.h"
#include "write/tuner/tuner.h"

namespace kernelpro {

namespace {

constexpr int kSweepStandby = 6;
constexpr int kSearchProbes = 4;  // kinds in each evaluation; the confirmation runs all

void tell_note(const Observer& observer, const std::string& note) {
  if (!observer || note.empty()) return;
  Progress progress;
  progress.event = Event::kNote;
  progress.detail = note;
  observer(progress);
}

// For a run at several stations: the others that are available now.
std::vector<Station*> others(const Stations& opened, const RunSettings& settings,
                             const Observer& observer) {
  const auto name = [&](std::size_t i) {
    return i < settings.gpus.size() ? "GPU " + settings.gpus[i] : "a station";
  };
  std::vector<Station*> stations;
  for (std::size_t i = 1; i < opened.size(); ++i) {
    if (opened[i]) {
      stations.push_back(opened[i]->get());
    } else {
      tell_note(observer, name(i) + " is left out: " + opened[i].error().message);
    }
  }
  return stations;
}

struct HowFar {
  bool only_replies = false;  // LoopParts
  bool confirm = true;
};

// `stations`: the first is prepared.
Result<RunResult> go(const StationMaker& maker, const Task& task, const RunSettings& settings,
                     Store& store, const Stations& stations, std::vector<Readiness> ready,
                     const Observer& observer, std::vector<double>* own_ms, ToolRecord record,
                     std::vector<Fact> facts, HowFar how_far = {}) {
  Mailbox mailbox;
  std::atomic<bool> over{false};
  WriterStart start;
  KP_ASSIGN(start.calls, store.calls());
  KP_ASSIGN(start.requests, store.requests());
  start.over = &over;
  KP_ASSIGN(auto proposer, how_far.only_replies ? make_collector(settings, start)
                                                : proposer_of(settings).make(settings, start));
  KP_ASSIGN(auto search, search_maker(settings));
  LoopParts parts;
  parts.task = &task;
  parts.settings = &settings;
  parts.store = &store;
  parts.station = stations.front()->get();
  parts.others = others(stations, settings, observer);
  parts.ready = std::move(ready);
  parts.mailbox = &mailbox;
  parts.over = &over;
  parts.maker = &maker;
  parts.proposer = proposer.get();
  parts.search = std::move(search);
  parts.observer = observer;
  parts.own_ms = own_ms;
  parts.record = std::move(record);
  parts.facts = std::move(facts);
  parts.only_replies = how_far.only_replies || proposer_of(settings).exhaustive;
  parts.confirm = how_far.confirm;
  if (!settings.start_from.empty()) {
    auto given = seeds(settings.start_from, task, settings.target);
    // A run that has begun has stored them; their sources may be gone.
    const auto begun = store.begun();
    if (!given && begun && !*begun) return tl::unexpected<Error>(std::move(given.error()));
    if (given) parts.seeds = std::move(*given);
  }
  return run_loop(parts);
}

// A sweep has many candidates in sequence: start their processes in parallel.
StationSettings station_of(const RunSettings& settings) {
  StationSettings station = settings;
  if (proposer_of(settings).exhaustive) station.standby = kSweepStandby;
  station.probes_each = kSearchProbes;
  return station;
}

Result<void> same_machine(const Machine& now, const Machine& then) {
  if (now.name == then.name) return {};
  return fail(ErrorKind::kEnvironment,
              "this run was measured on " + then.name + "; this machine is " + now.name,
              "resume it there, or start a new run here (--proposer replay takes its candidates)");
}

// The result of a finished run whose budgets have not changed.
Result<std::optional<RunResult>> finished(const Store& store, const RunSettings& settings) {
  KP_ASSIGN(auto confirmation, store.confirmation());
  if (!confirmation) return std::optional<RunResult>();
  Ledger ledger(settings.objective);
  KP_TRY(store.briefs([&](StoredBrief brief) { ledger.record(std::move(brief)); }));
  RunResult result;
  if (!take_confirmation(ledger, *confirmation, &result)) return std::optional<RunResult>();
  result.evaluations = ledger.evaluations();
  result.stopped_by = confirmation->stopped_by;
  result.own_ms_per_evaluation = confirmation->own_ms_per_evaluation;
  judge_end(settings, {}, &result);
  // A writer that was silent may answer now.
  if (result.end == RunEnd::kNothing || result.stopped_by.starts_with(kNoReply)) {
    return std::optional<RunResult>();
  }
  return std::optional<RunResult>(result);
}

// A stored run to continue.
struct Stored {
  std::unique_ptr<Store> store;
  RunHeader header;
  RunSettings settings;
};

Result<Stored> open_run(const std::string& directory) {
  KP_ASSIGN(auto store, Store::open(directory, Store::Mode::kWrite));
  KP_ASSIGN(auto header, store->header());
  auto settings = settings_from_json(header.settings_json);
  if (!settings) {
    return fail(ErrorKind::kStore, "the settings in the store of " + directory + " are damaged",
                "restore the folder from a copy, or start a new run");
  }
  settings->directory = directory;
  settings->target = header.target;
  return Stored{std::move(store), std::move(header), std::move(*settings)};
}

// A run of an older version began with none.
ToolRecord record_of(const RunHeader& header) {
  return record_from_json(header.record_json).value_or(ToolRecord());
}

std::vector<Fact> facts_of(const RunHeader& header) {
  return facts_from_json(header.facts_json).value_or(std::vector<Fact>());
}

bool same_budgets(const RunSettings& a, const RunSettings& b) {
  return a.max_evaluations == b.max_evaluations && a.max_seconds == b.max_seconds &&
         a.near_ceiling == b.near_ceiling && a.plateau == b.plateau &&
         a.roles.max_tokens == b.roles.max_tokens && a.roles.max_usd == b.roles.max_usd &&
         a.roles.max_calls == b.roles.max_calls;
}

// Continues a stored run, on the machine that it began on.
Result<RunResult> go_on(const StationMaker& maker, const Stored& run, const Observer& observer,
                        std::vector<double>* own_ms, HowFar how_far) {
  const Stations stations = maker(run.header.task, station_of(run.settings));
  if (!stations.front()) return tl::unexpected<Error>(stations.front().error());
  Station& station = **stations.front();
  KP_TRY(same_machine(station.machine(), run.header.machine));
  auto ready = prepare_others(stations);
  KP_TRY(station.prepare());
  return go(maker, run.header.task, run.settings, *run.store, stations, std::move(ready), observer,
            own_ms, record_of(run.header), facts_of(run.header), how_far);
}

// Whether anybody writes, and writes what this task and target can run.
Result<void> check_dialect(const Task& task, const RunSettings& settings) {
  if (!settings.dialect) return {};
  const DialectRow& row = dialect_row(*settings.dialect);
  const LanguageRow& language = language_row(row.language);
  const std::string name(row.name);
  if (!proposer_of(settings).writes_sources) {
    return fail(ErrorKind::kBadInput,
                "--language " + name + " is for writers, and the " + settings.proposer +
                    " writes no sources",
                "name a writer: --model, --proposer exchange");
  }
  if (language.target != settings.target) {
    return fail(
        ErrorKind::kBadInput,
        std::string(row.title) + " runs on the " + std::string(target_name(language.target)) +
            " target alone",
        "choose another --language, or --target " + std::string(target_name(language.target)));
  }
  if (language.in_python && !task.module) {
    return fail(ErrorKind::kBadInput,
                std::string(row.title) + " takes the place of a PyTorch module, and " + task.name +
                    " has none",
                "optimize a PyTorch file, or choose --language cuda");
  }
  return {};
}

}  // namespace

Result<void> check_run(const Task& task, const RunSettings& settings) {
  KP_TRY(Store::check_new(settings.directory));
  KP_ASSIGN(const auto start, start_candidate(task, settings.target));
  const bool cpu = settings.target == TargetKind::kCpu;
  const LanguageRow& written = language_row(start.language);
  const bool kernel = written.knobs && !kernel_of(task, written).empty();
  const ProposerRow& proposer = proposer_of(settings);
  if (!kernel && proposer.needs_knobs) {
    return fail(ErrorKind::kBadInput,
                "the " + settings.proposer + " moves the knobs of a kernel, and " + task.name +
                    " has no kernel",
                "give one with --start FILE, or let a writer begin: --model, --proposer exchange");
  }
  KP_TRY(check_dialect(task, settings));
  if (proposer.exhaustive) {
    KP_ASSIGN(const auto knobs, parse_knobs(start.source));
    KP_TRY(sweep_size(knobs));
  }
  if (cpu && settings.objective.wants_energy()) {
    return fail(ErrorKind::kBadInput, "energy is measured on the cuda target alone",
                "leave out --objective or --energy, or choose --target cuda");
  }
  KP_TRY(search_maker(settings));
  KP_TRY(seeds(settings.start_from, task, settings.target));
  return {};
}

Result<RunResult> optimize_with(const StationMaker& maker, const Task& task,
                                const RunSettings& settings, const Observer& observer,
                                std::vector<double>* own_ms) {
  KP_TRY(check_run(task, settings));
  const ProposerRow& proposer = proposer_of(settings);
  KP_TRY(proposer.check(settings));
  const Stations stations = maker(task, station_of(settings));
  if (!stations.front()) return tl::unexpected<Error>(stations.front().error());
  Station& station = **stations.front();
  auto ready = prepare_others(stations);
  KP_TRY(station.prepare());
  ToolRecord record;
  if (!settings.record.empty()) {
    KP_ASSIGN(record, read_record(settings.record, false));
  }
  std::string replayed;
  if (proposer.replays) {
    KP_ASSIGN(const auto results, read_recorded(settings.replay_from));
    replayed = recorded_to_json(results);
  }
  std::string note;
  std::vector<Fact> facts = facts_to_begin_with(task, settings, station.machine(), &note);
  tell_note(observer, note);
  const RunHeader header{task,
                         settings.target,
                         station.machine(),
                         settings_to_json(settings),
                         utc_now(),
                         KERNELPRO_VERSION,
                         record_to_json(record),
                         replayed,
                         facts_to_json(facts)};
  KP_ASSIGN(auto store, Store::open(settings.directory, Store::Mode::kCreate, &header));
  return go(maker, task, settings, *store, stations, std::move(ready), observer, own_ms,
            std::move(record), std::move(facts));
}

Result<RunResult> resume_with(const StationMaker& maker, const std::string& directory,
                              const RunSettings* budgets, const Observer& observer,
                              std::vector<double>* own_ms) {
  KP_ASSIGN(auto run, open_run(directory));
  RunSettings& settings = run.settings;
  if (budgets == nullptr || same_budgets(*budgets, settings)) {
    KP_ASSIGN(auto done, finished(*run.store, settings));
    if (done) return *done;
  } else {
    settings.max_evaluations = budgets->max_evaluations;
    settings.max_seconds = budgets->max_seconds;
    settings.near_ceiling = budgets->near_ceiling;
    settings.plateau = budgets->plateau;
    settings.roles.max_tokens = budgets->roles.max_tokens;
    settings.roles.max_usd = budgets->roles.max_usd;
    settings.roles.max_calls = budgets->roles.max_calls;
    KP_TRY(run.store->save_settings(settings_to_json(settings)));
  }
  return go_on(maker, run, observer, own_ms, {});
}

Result<RunResult> measure_with(const StationMaker& maker, const std::string& directory,
                               const Observer& observer, bool confirm) {
  KP_ASSIGN(auto run, open_run(directory));
  RunSettings& settings = run.settings;
  settings.proposer = kExchangeName;
  settings.max_evaluations = 0;  // no limit
  settings.max_seconds = 0;
  settings.near_ceiling = 1e9;
  settings.plateau = 0;
  settings.least_gain = 0;
  return go_on(maker, run, observer, nullptr, {true, confirm});
}

Result<RunResult> measure(const std::string& directory, const Observer& observer, bool confirm) {
  return measure_with(stations_anywhere(), directory, observer, confirm);
}

namespace {

// Of a stored run that is continued without a station.
Result<LoopParts> parts_without_station(const Stored& run) {
  LoopParts parts;
  KP_ASSIGN(parts.search, search_maker(run.settings));
  parts.task = &run.header.task;
  parts.settings = &run.settings;
  parts.store = run.store.get();
  parts.record = record_of(run.header);
  parts.facts = facts_of(run.header);
  parts.machine = &run.header.machine;
  return parts;
}

}  // namespace

Result<std::vector<std::string>> propose(const std::string& directory, int count,
                                         const RequestChanges& wanted) {
  KP_ASSIGN(auto run, open_run(directory));
  run.settings.proposer = kExchangeName;
  run.settings.feedback = wanted.feedback.value_or(run.settings.feedback);
  run.settings.prompts = wanted.prompts.value_or(run.settings.prompts);
  KP_ASSIGN(const LoopParts parts, parts_without_station(run));
  return write_requests(parts, exchange_folder(directory), count);
}

Result<int> propose_by_models(const std::string& directory, const RoleSettings& roles, int count,
                              const Observer& observer) {
  KP_TRY(reach_models(roles));
  KP_ASSIGN(auto run, open_run(directory));
  run.settings.proposer = kModelName;
  run.settings.roles = roles;
  run.settings.roles.tune = 0;  // a setting is worth nothing until it is measured
  KP_ASSIGN(LoopParts parts, parts_without_station(run));
  std::atomic<bool> over{false};
  WriterStart start;
  KP_ASSIGN(start.calls, run.store->calls());
  start.over = &over;
  KP_ASSIGN(const auto proposer, proposer_of(run.settings).make(run.settings, start));
  parts.proposer = proposer.get();
  parts.observer = observer;
  KP_ASSIGN(const int given, write_kernels(parts, count));
  const auto why = proposer->finished();
  if (given > 0 || !why) return given;
  return fail(ErrorKind::kEnvironment, "no kernel was written: " + *why,
              "check the model's server (docs/models.md), or name another one with --model");
}

Result<RunResult> optimize(const Task& task, const RunSettings& settings, const Observer& observer,
                           std::shared_ptr<ModuleReference> module) {
  return optimize_with(stations_anywhere(std::move(module)), task, settings, observer);
}

Result<RunResult> resume(const std::string& directory, const RunSettings* budgets,
                         const Observer& observer) {
  return resume_with(stations_anywhere(), directory, budgets, observer);
}

}  // namespace kernelpro
