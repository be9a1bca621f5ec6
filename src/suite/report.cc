// SPDX-License-Identifier: Apache-2.0
#include "suite/report.h"

#include <algorithm>
#include <cstdio>
#include <set>

#include "base/files.h"
#include "base/text.h"
#include "core/machine/machine.h"
#include "report/view.h"
#include "suite/rows.h"

namespace kernelpro {

namespace {

std::string fixed(const char* format, double value) {
  char text[40];
  std::snprintf(text, sizeof text, format, value);
  return text;
}
std::string ratio(double value) { return value > 0 ? fixed("%.2fx", value) : "-"; }
std::string percent(double share) { return fixed("%.0f %%", 100 * share); }
std::string p_text(double p) { return p < 0.0001 ? "< 0.0001" : fixed("%.4f", p); }

std::vector<int> levels_of(const SuiteSettings& settings) {
  std::set<int> levels;
  for (const SuiteTask& task : settings.tasks) levels.insert(task.level);
  std::vector<int> list;
  if (levels.size() > 1) list.assign(levels.begin(), levels.end());
  list.push_back(0);  // all
  return list;
}

// `known`: the price of all of them; `usd` is of those whose price is.
std::string cost_text(std::int64_t tokens, double usd, bool known) {
  if (tokens == 0) return "-";
  const std::string text = std::to_string(tokens) + " tokens, ";
  if (!known && usd <= 0) return text + "price unknown";
  return text + "$" + fixed("%.2f", usd) + (known ? "" : " and what has no known price");
}

std::string measures_table(const SuiteSettings& settings, const std::vector<TaskResult>& results) {
  std::vector<std::string> head = {"arm", "level", "against", "tasks", "correct"};
  for (const double p : kFastThresholds) head.push_back("fast_" + number(p, 2));
  for (const char* name :
       {"geomean, correct ones", "geomean, failures as 1x", "median", "of the speed of light"}) {
    head.push_back(name);
  }
  MarkdownTable table(head);
  int not_compared = 0;
  for (const Arm& arm : settings.arms) {
    for (const int level : levels_of(settings)) {
      for (const std::string& yardstick : yardsticks(results)) {
        const Measures m = measure_scores(scores(results, arm.name, level, yardstick));
        not_compared += m.not_compared;
        if (m.tasks == 0) continue;
        std::vector<std::string> row = {
            arm.name, level == 0 ? "all" : std::to_string(level), yardstick,
            std::to_string(m.tasks), std::to_string(m.correct) + " (" + percent(m.success) + ")"};
        for (const auto& [p, share] : m.fast) row.push_back(fixed("%.2f", share));
        row.push_back(ratio(m.geomean_correct));
        row.push_back(ratio(m.geomean_all));
        row.push_back(ratio(m.median_correct));
        row.push_back(m.fraction > 0 ? ceiling_share(m.fraction) : "-");
        table.add(row);
      }
    }
  }
  if (table.empty() && not_compared > 0) {
    return how_many(not_compared, "task") +
           " finished with a correct kernel, and there is nothing to compare them with: with "
           "--baselines, PyTorch's own times are measured too.\n";
  }
  if (table.empty()) return "Nothing is finished yet.\n";
  std::string text = table.text();
  if (not_compared > 0) {
    text += "\nLeft out of rows whose yardstick has no time: " +
            how_many(not_compared, "correct result") + ".\n";
  }
  return text;
}

std::string cost_table(const SuiteSettings& settings, const std::vector<TaskResult>& results) {
  MarkdownTable table(
      {"arm", "finished", "open", "waiting", "broken", "evaluations", "run time", "models"});
  for (const Arm& arm : settings.arms) {
    int states[4] = {}, evaluations = 0;
    double seconds = 0, usd = 0;
    bool usd_known = true;
    std::int64_t tokens = 0;
    for (const TaskResult& result : results) {
      if (result.arm != arm.name) continue;
      ++states[static_cast<int>(result.state)];
      evaluations += result.evaluations;
      seconds += result.seconds;
      usd += result.usd;
      usd_known = usd_known && result.usd_known;
      tokens += result.tokens;
    }
    table.add({arm.name, std::to_string(states[static_cast<int>(RunState::kFinished)]),
               std::to_string(states[static_cast<int>(RunState::kOpen)]),
               std::to_string(states[static_cast<int>(RunState::kWaiting)]),
               std::to_string(states[static_cast<int>(RunState::kBroken)]),
               std::to_string(evaluations), human_seconds(seconds),
               cost_text(tokens, usd, usd_known)});
  }
  return table.text();
}

std::string comparison_table(const SuiteSettings& settings,
                             const std::vector<TaskResult>& results) {
  if (settings.arms.size() < 2) return "";
  MarkdownTable table({"arm", "against", "tasks", "ratio", "95 % interval", "p", "p (Holm)",
                       "effect", "solved by it alone", "by the other alone"});
  std::vector<std::pair<std::string, std::vector<Score>>> arms;
  for (const Arm& arm : settings.arms) {
    arms.emplace_back(arm.name, scores(results, arm.name, 0, kOverStart));
  }
  for (const ArmComparison& c : compare_arms(arms, settings.run.seed)) {
    table.add({c.b, c.a, std::to_string(c.pairs), fixed("%.3f", c.ratio),
               fixed("%.3f", c.low) + " to " + fixed("%.3f", c.high),
               p_text(c.test.p) + (c.test.exact ? " (exact)" : ""), p_text(c.adjusted_p),
               fixed("%+.2f", c.test.effect), std::to_string(c.only_b), std::to_string(c.only_a)});
  }
  return "\n## Arms compared\n\nOver the tasks that both arms finished: geometric mean of the "
         "speedups' ratio, failures as 1x, with a percentile bootstrap over tasks (10,000 "
         "resamples); Wilcoxon's signed-rank test, two-sided, and its matched-pairs rank-biserial "
         "correlation; Holm over the rows.\n\n" +
         table.text();
}

std::string speedup_cell(const TaskResult& r) {
  if (!r.correct) return "failed";
  if (r.speedup <= 0) return "-";
  if (!r.confirmed) return ratio(r.speedup) + " (not confirmed)";
  return ratio(r.speedup) + " (" + fixed("%.2f", r.low) + " to " + fixed("%.2f", r.high) + ")";
}

std::string held_out_cell(const TaskResult& r) {
  std::vector<std::string> failed;
  for (const HeldOut& one : r.held_out) {
    if (held_out_failed({one})) failed.push_back(one.case_name);
  }
  if (!failed.empty()) return "FAILED: " + join_text(failed, ", ");
  return ratio(held_out_speedup(r.held_out));
}

// A note on held-out failures, which the column cannot show.
std::string held_out_note(const std::vector<TaskResult>& results) {
  const auto fails = [](const TaskResult& r) { return held_out_failed(r.held_out); };
  const auto count = static_cast<std::size_t>(std::count_if(results.begin(), results.end(), fails));
  if (count == 0) return "";
  return "\nRight in the cases that the search knew, and wrong in others of the same task: " +
         how_many(count, "winner") + ". `kernelpro show RUN` shows how.\n";
}

std::string tasks_table(const std::vector<TaskResult>& results) {
  std::vector<std::string> head = {"arm", "task", "state", "speedup over the start", "time"};
  const std::vector<std::string> names = yardsticks(results);
  for (std::size_t i = 1; i < names.size(); ++i) head.push_back("over " + names[i]);
  const bool held_out = std::any_of(results.begin(), results.end(),
                                    [](const TaskResult& r) { return !r.held_out.empty(); });
  if (held_out) head.push_back("in held-out cases");
  for (const char* name : {"of the speed of light", "evaluations", "failed", "run time", "models"})
    head.push_back(name);
  MarkdownTable table(head);
  for (const TaskResult& r : results) {
    if (r.state == RunState::kWaiting) continue;
    const bool page = exists(join(r.directory, "report.html"));
    std::vector<std::string> row = {
        r.arm,
        page ? "[" + r.task.name + "](" + r.arm + "/" + r.task.name + "/report.html)" : r.task.name,
        std::string(run_state_name(r.state)), r.evaluations > 0 ? speedup_cell(r) : "-",
        r.best_us > 0 ? human_us(r.best_us) : "-"};
    for (std::size_t i = 1; i < names.size(); ++i) {
      const std::vector<Score> own = scores({r}, r.arm, 0, names[i]);
      row.push_back(own.empty() ? "-" : ratio(own.front().speedup));
    }
    if (held_out) row.push_back(held_out_cell(r));
    row.push_back(r.fraction > 0 ? ceiling_share(r.fraction) : "-");
    row.push_back(std::to_string(r.evaluations));
    row.push_back(std::to_string(r.failed));
    row.push_back(human_seconds(r.seconds));
    row.push_back(cost_text(r.tokens, r.usd, r.usd_known));
    table.add(row);
  }
  if (table.empty()) return "";
  return "\n## Tasks\n\n" + table.text() + held_out_note(results);
}

std::string broken_list(const std::vector<TaskResult>& results) {
  std::string text;
  for (const TaskResult& r : results) {
    if (r.state != RunState::kBroken) continue;
    text += "- " + r.arm + ", " + r.task.name + ": " +
            one_line(replace_all(r.reason, "\n  next:", "; next:")) + "\n";
  }
  return text.empty() ? "" : "\n## Broken tasks\n\nThey are not part of any measure.\n\n" + text;
}

std::string excluded_list(const SuiteSettings& settings) {
  std::string text;
  for (const ExcludedTask& each : settings.excluded) {
    text += "- " + each.label + " (" + each.by + "): " + each.reason + "\n";
  }
  return text.empty() ? "" : "\n## Left out\n\n" + text;
}

std::string joined(const std::set<std::string>& values) {
  return join_text(std::vector<std::string>(values.begin(), values.end()), "; ");
}

std::string heading(const SuiteSettings& settings, const std::vector<TaskResult>& results) {
  std::set<std::string> machines, trusts;
  for (const TaskResult& r : results) {
    if (!r.machine.empty()) machines.insert(r.machine);
    if (!r.trust.empty()) trusts.insert(r.trust);
  }
  const RunSettings& run = settings.run;
  std::string writer = run.proposer;
  if (!run.roles.coder.empty()) writer += " (" + run.roles.coder + ")";
  return "# " + basename(settings.suite) + ": " + how_many(settings.tasks.size(), "task") + ", " +
         how_many(settings.arms.size(), "arm") + "\n\n" + settings.rule + " Written by: " + writer +
         ". Budget of a task: " + how_many(run.max_evaluations, "evaluation") + ", " +
         human_seconds(run.max_seconds) +
         " of run time. Policy: " + std::string(policy_name(run.policy)) + "." +
         (machines.empty() ? "" : " Measured on: " + joined(machines) + ".") +
         (trusts.empty() ? "" : " Winners ran as: " + joined(trusts) + ".") +
         "\n\nA task is correct when a candidate other than the search's start is; its speedup is "
         "the fastest such candidate's. fast_p is the share of all tasks that are correct and "
         "faster by more than p.\n";
}

}  // namespace

std::string suite_summary(const SuiteSettings& settings, const std::vector<TaskResult>& results) {
  return "\n## Measures\n\n" + measures_table(settings, results) + "\n" +
         cost_table(settings, results) + comparison_table(settings, results);
}

std::string suite_markdown(const SuiteSettings& settings, const std::vector<TaskResult>& results) {
  return heading(settings, results) + suite_summary(settings, results) + tasks_table(results) +
         broken_list(results) + excluded_list(settings);
}

std::string result_line(const TaskResult& r) {
  std::string text = r.arm + " " + r.task.name + ": ";
  if (r.state == RunState::kBroken) return text + one_line(r.reason);
  if (r.state != RunState::kFinished) text += std::string(run_state_name(r.state)) + ", ";
  if (r.waits_for_replies) {
    text += "waits for replies in " + join(r.directory, "exchange") + ", ";
  }
  if (r.correct) {
    text += speedup_cell(r);
  } else if (r.evaluations == 0) {
    text += "nothing measured yet";
  } else {
    text += r.start_correct ? "no correct candidate but the start"
                            : "nothing is correct, not even the start";
  }
  if (!r.held_out.empty()) text += ", in held-out cases " + held_out_cell(r);
  return text + ", " + how_many(r.evaluations, "evaluation") + ", " + human_seconds(r.seconds);
}

Result<void> write_suite_report(const SuiteSettings& settings,
                                const std::vector<TaskResult>& results) {
  KP_TRY(write_file(join(settings.directory, "report.md"), suite_markdown(settings, results)));
  KP_TRY(write_file(join(settings.directory, "report.json"), suite_json(settings, results)));
  for (const auto& [path, text] : kernelbench_files(settings, results)) {
    const std::string file = join(settings.directory, path);
    KP_TRY(make_dirs(dirname(file)));
    KP_TRY(write_file(file, text));
  }
  return {};
}

}  // namespace kernelpro
