// SPDX-License-Identifier: Apache-2.0
// The suite as JSON, in our format and in KernelBench's.
#include "base/json.h"

#include <map>
#include <set>

#include "base/files.h"
#include "suite/report.h"

namespace kernelpro {

namespace {

Json measures_json(const std::string& arm, int level, const std::string& yardstick,
                   const Measures& m) {
  Json fast = Json::object();
  for (const auto& [p, share] : m.fast) fast[dump_json(Json(p))] = share;
  return {{"arm", arm},
          {"level", level},
          {"against", yardstick},
          {"tasks", m.tasks},
          {"correct", m.correct},
          {"not_compared", m.not_compared},
          {"success", m.success},
          {"fast_p", fast},
          {"geomean_correct", m.geomean_correct},
          {"geomean_failures_as_1x", m.geomean_all},
          {"median_correct", m.median_correct},
          {"fraction_of_speed_of_light", m.fraction}};
}

Json comparison_json(const ArmComparison& c) {
  return {{"arm", c.b},
          {"against", c.a},
          {"pairs", c.pairs},
          {"ratio", c.ratio},
          {"low", c.low},
          {"high", c.high},
          {"differ", c.test.pairs},
          {"p", c.test.p},
          {"exact", c.test.exact},
          {"p_holm", c.adjusted_p},
          {"rank_biserial", c.test.effect},
          {"only_arm_solved", c.only_b},
          {"only_against_solved", c.only_a}};
}

Json result_json(const TaskResult& r) {
  return {{"arm", r.arm},
          {"task", r.task.name},
          {"label", task_label(r.task)},
          {"state", run_state_name(r.state)},
          {"reason", r.reason},
          {"run", r.directory},
          {"machine", r.machine},
          {"writer", r.writer},
          {"correct", r.correct},
          {"compiled", r.compiled},
          {"failure", r.failure},
          {"confirmed", r.confirmed},
          {"speedup", r.speedup},
          {"speedup_low", r.low},
          {"speedup_high", r.high},
          {"start_us", r.start_us},
          {"best_us", r.best_us},
          {"held_out",
           r.held_out.empty() ? Json() : parse_json(held_out_to_json(r.held_out)).value_or(Json())},
          {"trust", r.trust},
          {"fraction_of_speed_of_light", r.fraction},
          {"evaluations", r.evaluations},
          {"failed", r.failed},
          {"seconds", r.seconds},
          {"questions", r.questions},
          {"tokens", r.tokens},
          {"usd", r.usd_known ? Json(r.usd) : Json()},
          {"baselines", parse_json(baselines_to_json(r.baselines)).value_or(Json::array())}};
}

// KernelBench uses milliseconds (src/kernelbench/timing.py); its "mean" holds our median.
Json stats_json(double us, double low_us, double high_us, const Timing& timing,
                const std::string& machine) {
  return {{"mean", us / 1000},        {"median", us / 1000},          {"low95", low_us / 1000},
          {"high95", high_us / 1000}, {"num_trials", timing.samples}, {"method", timing.method},
          {"hardware", machine}};
}

// A sample as written by scripts/eval_from_generations.py.
Json sample_json(const TaskResult& r) {
  Json metadata = {{"hardware", r.machine},
                   {"runtime_is", "median in ms, in mean's place"},
                   {"kernelpro_run", r.directory},
                   {"trust", r.trust}};
  if (!r.failure.empty()) {
    metadata[r.compiled ? "correctness_issue" : "compilation_error"] = r.failure;
  }
  Json sample = {{"sample_id", 0},           {"compiled", r.compiled},
                 {"correctness", r.correct}, {"metadata", metadata},
                 {"runtime", -1.0},          {"runtime_stats", Json::object()}};
  if (!r.correct || r.timings.empty()) return sample;
  const Timing& timing = r.timings.back();
  sample["runtime"] = r.best_us / 1000;
  sample["runtime_stats"] = stats_json(r.best_us, timing.low_us, timing.high_us, timing, r.machine);
  return sample;
}

// kOverStart and each PyTorch baseline, as written by scripts/generate_baseline_time.py.
void add_baselines(const TaskResult& r, std::map<std::string, Json>* files) {
  const std::string level = "level" + std::to_string(r.task.level);
  const std::string name = basename(r.task.path);
  // The start's time on the winner's scale, from the measured speedup.
  if (r.speedup > 0 && r.best_us > 0) {
    (*files)[kOverStart][level][name] = {{"mean", r.best_us * r.speedup / 1000},
                                         {"hardware", r.machine}};
  }
  for (const Baseline& baseline : r.baselines) {
    const Timing& t = baseline.timing;
    if (t.samples == 0) continue;
    (*files)[baseline.name][level][name] =
        stats_json(t.median_us, t.low_us, t.high_us, t, r.machine);
  }
}

}  // namespace

std::string suite_json(const SuiteSettings& settings, const std::vector<TaskResult>& results) {
  Json measures = Json::array(), comparisons = Json::array(), tasks = Json::array();
  std::set<int> levels = {0};
  for (const SuiteTask& task : settings.tasks) levels.insert(task.level);
  std::vector<std::pair<std::string, std::vector<Score>>> arms;
  for (const Arm& arm : settings.arms) {
    for (const int level : levels) {
      for (const std::string& yardstick : yardsticks(results)) {
        const Measures m = measure_scores(scores(results, arm.name, level, yardstick));
        measures.push_back(measures_json(arm.name, level, yardstick, m));
      }
    }
    arms.emplace_back(arm.name, scores(results, arm.name, 0, kOverStart));
  }
  for (const ArmComparison& c : compare_arms(arms, settings.run.seed)) {
    comparisons.push_back(comparison_json(c));
  }
  for (const TaskResult& r : results) tasks.push_back(result_json(r));
  const Json json = {{"settings", parse_json(suite_to_json(settings)).value_or(Json())},
                     {"measures", measures},
                     {"comparisons", comparisons},
                     {"tasks", tasks}};
  return dump_json(json, 2) + "\n";
}

std::vector<std::pair<std::string, std::string>> kernelbench_files(
    const SuiteSettings& settings, const std::vector<TaskResult>& results) {
  std::vector<std::pair<std::string, std::string>> files;
  if (!settings.kernelbench) return files;
  for (const Arm& arm : settings.arms) {
    std::map<int, std::map<int, Json>> levels;
    std::map<std::string, Json> baselines;
    for (const TaskResult& r : results) {
      if (r.arm != arm.name || !has_result(r)) continue;
      levels[r.task.level][r.task.number] = Json::array({sample_json(r)});
      add_baselines(r, &baselines);
    }
    for (const auto& [level, problems] : levels) {
      Json json = Json::object();
      for (const auto& [number, samples] : problems) json[std::to_string(number)] = samples;
      files.emplace_back(
          "kernelbench/" + arm.name + "-level" + std::to_string(level) + "/eval_results.json",
          dump_json(json, 4) + "\n");
    }
    for (const auto& [name, json] : baselines) {
      files.emplace_back("kernelbench/baselines/" + arm.name + "-" + name + ".json",
                         dump_json(json, 4) + "\n");
    }
  }
  return files;
}

}  // namespace kernelpro
