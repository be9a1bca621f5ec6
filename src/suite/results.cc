// SPDX-License-Identifier: Apache-2.0
#include "suite/results.h"

#include <unistd.h>

#include <algorithm>

#include "base/files.h"
#include "base/hash.h"
#include "base/json.h"
#include "report/view.h"
#include "run/store/winner.h"
#include "write/calls.h"

namespace kernelpro {

namespace {

constexpr const char* kBroken = "broken.json";
constexpr const char* kEnded = "ended.json";
constexpr const char* kBaselines = "baselines.json";
constexpr ErrorKind kKinds[] = {ErrorKind::kBadInput, ErrorKind::kEnvironment,
                                ErrorKind::kBusy,     ErrorKind::kStore,
                                ErrorKind::kTask,     ErrorKind::kInternal};

void read_cost(const RunView& view, TaskResult* result) {
  const Spend spend = spend_of(view.calls);
  result->tokens = spend.tokens;
  result->questions = spend.calls;
  result->usd = spend.usd;
  result->usd_known = std::all_of(view.calls.begin(), view.calls.end(), [](const ModelCall& call) {
    return usage_from_json(call.usage).cost_known;
  });
}

// The best correct candidate other than the start that did not fail confirmation.
const StoredCandidate* best_written(const RunView& view, const Story& story, const Ending& ending) {
  const auto eligible = [&](const StoredCandidate& each) {
    return &each != story.start && std::find(ending.unconfirmed.begin(), ending.unconfirmed.end(),
                                             each.known.id) == ending.unconfirmed.end();
  };
  return winner_of(RankedRun(view.header, view.candidates), nullptr, eligible).candidate;
}

void read_winner(const RunView& view, const Ending& ending, TaskResult* result) {
  const Story story = tell(view);
  result->evaluations = story.evaluated;
  result->failed = story.failed;
  for (const StoredCandidate& each : view.candidates) {
    if (!each.evaluated || &each == story.start) continue;
    const Outcome& outcome = each.known.evaluation.outcome;
    if (!std::holds_alternative<CompileError>(outcome)) result->compiled = true;
    if (each.known.evaluation.correct() == nullptr) result->failure = outcome_summary(outcome);
  }
  result->start_correct =
      story.start != nullptr && story.start->known.evaluation.correct() != nullptr;
  const bool won = story.confirmed && story.best != story.start;
  const StoredCandidate* best = won ? story.best : best_written(view, story, ending);
  if (best == nullptr) {
    if (!ending.unconfirmed.empty())
      result->failure = "no candidate was confirmed in fresh processes";
    return;
  }
  result->correct = true;
  result->failure.clear();
  const Evaluation& evaluation = won ? view.confirmation->evaluation : best->known.evaluation;
  result->timings = evaluation.correct()->timings;
  result->trust = best->known.evaluation.trust;
  result->best_us = score_us(evaluation);
  result->fraction = won ? story.fraction : best->known.diagnosis.fraction_of_ceiling;
  if (!result->start_correct) return;
  result->confirmed = won;
  if (won) {
    result->speedup = story.speedup;
    result->low = story.low;
    result->high = story.high;
    result->start_us = story.final_baseline_us;
    result->held_out = view.confirmation->held_out;
    return;
  }
  const double us = comparable_us(best->known);
  if (us <= 0) return;
  result->start_us = comparable_us(story.start->known);
  result->speedup = result->start_us / us;
  // The confirmation in fresh processes did not find it faster.
  if (story.confirmed) result->speedup = std::min(result->speedup, 1.0);
  result->low = result->high = result->speedup;
}

void read_run(TaskResult* result) {
  const auto view = load_run_view(result->directory);
  if (!view) {
    result->state = RunState::kBroken;
    result->reason = view.error().text();
    return;
  }
  Ending ending;
  const bool closed = read_ending(result->directory, &ending);
  result->waits_for_replies = !closed && !view->open_requests.empty();
  const bool ended = closed || (view->confirmation && !result->waits_for_replies);
  result->state = ended ? RunState::kFinished : RunState::kOpen;
  result->tried_nothing = ending.tried_nothing;
  result->machine = view->header.machine.name;
  result->created = view->header.created;
  result->writer =
      JsonReader(parse_json(view->header.settings_json).value_or(Json())).text("proposer");
  result->seconds = view->run_seconds;
  read_cost(*view, result);
  read_winner(*view, ending, result);
}

double baseline_speedup(const TaskResult& result, const std::string& name) {
  for (const Baseline& baseline : result.baselines) {
    if (baseline.name != name || baseline.timing.samples == 0) continue;
    for (const Timing& timing : result.timings) {
      const bool same = result.timings.size() == 1 || timing.case_name == baseline.timing.case_name;
      if (same && timing.median_us > 0) return baseline.timing.median_us / timing.median_us;
    }
  }
  return 0;
}

}  // namespace

bool has_result(const TaskResult& result) {
  return result.state == RunState::kFinished || (result.waits_for_replies && result.correct);
}

std::string_view run_state_name(RunState state) {
  switch (state) {
    case RunState::kWaiting:
      return "waiting";
    case RunState::kOpen:
      return "open";
    case RunState::kFinished:
      return "finished";
    case RunState::kBroken:
      return "broken";
  }
  return "";
}

std::string task_fingerprint(const SuiteTask& task) {
  if (!is_dir(task.path)) return hash_hex(read_file(task.path).value_or(std::string()));
  std::string all;
  for (const std::string& name : list_dir(task.path)) {
    const std::string file = join(task.path, name);
    if (is_dir(file)) continue;
    all += hash_hex({name, read_file(file).value_or(std::string())});
  }
  return hash_hex(all);
}

bool holds(const Breakage& breakage, const SuiteTask& task) {
  return breakage.final && breakage.task == task_fingerprint(task);
}

Result<void> write_breakage(const std::string& run_folder, const Breakage& breakage) {
  KP_TRY(make_dirs(run_folder));
  const Json json = {{"kind", static_cast<int>(breakage.error.kind)},
                     {"message", breakage.error.message},
                     {"next", breakage.error.next},
                     {"final", breakage.final},
                     {"task", breakage.task}};
  return write_file(join(run_folder, kBroken), dump_json(json, 2) + "\n");
}

bool read_breakage(const std::string& run_folder, Breakage* breakage) {
  const std::string path = join(run_folder, kBroken);
  if (!exists(path)) return false;
  const auto text = read_file(path, 1 << 20);
  const Json json = text ? parse_json(*text).value_or(Json()) : Json();
  const JsonReader r(json);
  breakage->error = {ErrorKind::kInternal, r.text("message"), r.text("next")};
  for (const ErrorKind kind : kKinds) {
    if (static_cast<int>(kind) == r.integer("kind")) breakage->error.kind = kind;
  }
  breakage->final = r.flag("final");
  breakage->task = r.text("task");
  return true;
}

void forget_breakage(const std::string& run_folder) { ::unlink(join(run_folder, kBroken).c_str()); }

Result<void> write_ending(const std::string& run_folder, const Ending& ending) {
  const Json json = {{"stopped_by", ending.stopped_by},
                     {"tried_nothing", ending.tried_nothing},
                     {"unconfirmed", ending.unconfirmed}};
  return write_file(join(run_folder, kEnded), dump_json(json, 2) + "\n");
}

bool read_ending(const std::string& run_folder, Ending* ending) {
  const std::string path = join(run_folder, kEnded);
  if (!exists(path)) return false;
  const auto text = read_file(path, 1 << 20);
  const Json json = text ? parse_json(*text).value_or(Json()) : Json();
  ending->stopped_by = JsonReader(json).text("stopped_by");
  ending->tried_nothing = JsonReader(json).flag("tried_nothing");
  for (const Json& id : JsonReader(json).array("unconfirmed")) {
    if (id.is_number_integer()) ending->unconfirmed.push_back(id.get<std::int64_t>());
  }
  return true;
}

Result<void> write_baselines(const std::string& run_folder,
                             const std::vector<Baseline>& baselines) {
  return write_file(join(run_folder, kBaselines), baselines_to_json(baselines));
}

bool has_baselines(const std::string& run_folder) { return exists(join(run_folder, kBaselines)); }

TaskResult read_result(const SuiteSettings& settings, const Arm& arm, const SuiteTask& task) {
  TaskResult result;
  result.arm = arm.name;
  result.task = task;
  result.directory = run_folder(settings, arm, task);
  if (exists(store_path(result.directory))) read_run(&result);
  Breakage breakage;
  if (result.state != RunState::kFinished && read_breakage(result.directory, &breakage)) {
    result.state = RunState::kBroken;
    result.reason = breakage.error.text();
  }
  if (has_baselines(result.directory)) {
    const auto text = read_file(join(result.directory, kBaselines), 1 << 20);
    if (text) result.baselines = baselines_from_json(*text);
  }
  return result;
}

std::vector<TaskResult> read_results(const SuiteSettings& settings) {
  std::vector<TaskResult> results;
  for (const Arm& arm : settings.arms) {
    for (const SuiteTask& task : settings.tasks) {
      results.push_back(read_result(settings, arm, task));
    }
  }
  return results;
}

std::vector<std::string> yardsticks(const std::vector<TaskResult>& results) {
  std::vector<std::string> names = {kOverStart};
  for (const TaskResult& result : results) {
    for (const Baseline& baseline : result.baselines) {
      if (std::find(names.begin(), names.end(), baseline.name) == names.end()) {
        names.push_back(baseline.name);
      }
    }
  }
  return names;
}

std::vector<Score> scores(const std::vector<TaskResult>& results, const std::string& arm, int level,
                          const std::string& yardstick) {
  std::vector<Score> list;
  for (const TaskResult& result : results) {
    if (result.arm != arm || !has_result(result)) continue;
    if (level != 0 && result.task.level != level) continue;
    Score score{result.task.name, result.correct, 0, result.fraction};
    score.speedup = yardstick == kOverStart ? result.speedup : baseline_speedup(result, yardstick);
    list.push_back(std::move(score));
  }
  return list;
}

}  // namespace kernelpro
