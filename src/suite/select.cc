// SPDX-License-Identifier: Apache-2.0
#include "suite/select.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <set>

#include "base/files.h"
#include "base/hash.h"
#include "base/text.h"
#include "embedded/suite_degenerate.h"

namespace kernelpro {

namespace {

constexpr int kHighestLevel = 9;

tl::unexpected<Error> bad(std::string message, std::string next) {
  return fail(ErrorKind::kBadInput, std::move(message), std::move(next));
}

// Parses all of `text` as a positive integer; 0 if it is not one.
int natural(std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && value > 0 ? value : 0;
}

std::vector<std::string> listed(const std::string& text) {
  std::vector<std::string> items;
  for (const std::string& item : split(text, ',')) {
    if (!trim(item).empty()) items.emplace_back(trim(item));
  }
  return items;
}

std::string level_folder(const std::string& suite, int level) {
  const std::string name = "level" + std::to_string(level);
  const std::string inner = join(join(suite, "KernelBench"), name);
  return is_dir(inner) ? inner : join(suite, name);
}

std::vector<SuiteTask> level_tasks(const std::string& suite, int level) {
  std::vector<SuiteTask> tasks;
  const std::string folder = level_folder(suite, level);
  for (const std::string& file : list_dir(folder)) {
    const int number = natural(std::string_view(file).substr(0, file.find('_')));
    if (number == 0 || !file.ends_with(".py")) continue;
    const std::string stem = file.substr(0, file.size() - 3);
    tasks.push_back(
        {"level" + std::to_string(level) + "-" + stem, join(folder, file), level, number});
  }
  std::sort(tasks.begin(), tasks.end(),
            [](const SuiteTask& a, const SuiteTask& b) { return a.number < b.number; });
  return tasks;
}

std::vector<SuiteTask> folder_tasks(const std::string& suite) {
  std::vector<SuiteTask> tasks;
  for (const std::string& name : list_dir(suite)) {
    const std::string folder = join(suite, name);
    if (exists(join(folder, "task.toml"))) tasks.push_back({name, folder, 0, 0});
  }
  return tasks;
}

Result<std::vector<SuiteTask>> all_tasks(const std::string& suite, bool* kernelbench) {
  std::vector<SuiteTask> tasks;
  for (int level = 1; level <= kHighestLevel; ++level) {
    for (SuiteTask& task : level_tasks(suite, level)) tasks.push_back(std::move(task));
  }
  *kernelbench = !tasks.empty();
  if (tasks.empty()) tasks = folder_tasks(suite);
  if (!tasks.empty()) return tasks;
  if (!is_dir(suite)) {
    return bad("there is no folder " + suite,
               "name a KernelBench checkout, or a folder of task folders such as examples");
  }
  if (exists(join(suite, "task.toml"))) {
    return bad(suite + " is one task, not a folder of tasks",
               "name the folder above it, or use: kernelpro optimize " + suite);
  }
  return bad(suite + " holds neither KernelBench's levels nor folders with a task.toml",
             "name a KernelBench checkout, or a folder of task folders such as examples");
}

Result<void> keep_levels(const std::string& text, std::vector<SuiteTask>* tasks) {
  std::set<int> levels;
  for (const std::string& item : listed(text)) {
    const int level = natural(item);
    const bool there = std::any_of(tasks->begin(), tasks->end(),
                                   [&](const SuiteTask& task) { return task.level == level; });
    if (level == 0 || !there) {
      return bad("--levels: the suite has no level \"" + item + "\"",
                 "name levels that it has, as in --levels 1,2");
    }
    levels.insert(level);
  }
  if (levels.empty()) levels = {1, 2, 3};
  std::erase_if(*tasks, [&](const SuiteTask& task) { return levels.count(task.level) == 0; });
  return {};
}

Result<void> keep_range(const std::string& text, std::vector<SuiteTask>* tasks) {
  const std::size_t dash = text.find('-');
  const int from = natural(trim(std::string_view(text).substr(0, dash)));
  const int to =
      dash == std::string::npos ? from : natural(trim(std::string_view(text).substr(dash + 1)));
  if (from == 0 || to < from) {
    return bad("--range \"" + text + "\" is not a range of numbers",
               "write, for example, --range 1-20");
  }
  std::erase_if(*tasks,
                [&](const SuiteTask& task) { return task.number < from || task.number > to; });
  return {};
}

Result<void> keep_named(const std::string& text, std::vector<SuiteTask>* tasks) {
  std::set<std::string> wanted;
  for (const std::string& item : listed(text)) {
    const bool there = std::any_of(tasks->begin(), tasks->end(),
                                   [&](const SuiteTask& task) { return task_label(task) == item; });
    if (!there) {
      return bad("--tasks: the suite has no task \"" + item + "\"",
                 "name tasks as in --tasks 1/23,2/9, or folders by their names");
    }
    wanted.insert(item);
  }
  std::erase_if(*tasks, [&](const SuiteTask& task) { return wanted.count(task_label(task)) == 0; });
  return {};
}

Result<std::vector<ExcludedTask>> exclusions(const SelectSettings& settings,
                                             const std::vector<SuiteTask>& all, bool kernelbench) {
  std::vector<ExcludedTask> list;
  if (kernelbench && !settings.degenerate) {
    list = *parse_exclusions(std::string(embedded::suite_degenerate), "built-in");
  }
  if (settings.exclude.empty()) return list;
  KP_ASSIGN(const auto text, read_file(settings.exclude, 1 << 20));
  KP_ASSIGN(auto own, parse_exclusions(text, settings.exclude));
  for (ExcludedTask& each : own) {
    const bool there = std::any_of(all.begin(), all.end(), [&](const SuiteTask& task) {
      return task_label(task) == each.label;
    });
    if (!there) {
      return bad(settings.exclude + ": the suite has no task \"" + each.label + "\"",
                 "name tasks as 1/23, or folders by their names");
    }
    list.push_back(std::move(each));
  }
  return list;
}

void take_sample(const SelectSettings& settings, std::vector<SuiteTask>* tasks) {
  const std::string seed = std::to_string(settings.seed);
  std::map<int, std::vector<std::pair<std::string, std::string>>> levels;
  for (const SuiteTask& task : *tasks) {
    levels[task.level].emplace_back(hash_hex({seed, task.name}), task.name);
  }
  std::set<std::string> kept;
  for (auto& [level, order] : levels) {
    std::sort(order.begin(), order.end());
    for (std::size_t i = 0; i < order.size() && i < static_cast<std::size_t>(settings.sample); ++i)
      kept.insert(order[i].second);
  }
  std::erase_if(*tasks, [&](const SuiteTask& task) { return kept.count(task.name) == 0; });
}

Result<void> check_conflicts(const SelectSettings& settings, bool kernelbench) {
  if (!settings.tasks.empty()) {
    const char* other = !settings.levels.empty()  ? "--levels"
                        : !settings.range.empty() ? "--range"
                        : settings.sample > 0     ? "--sample"
                                                  : nullptr;
    if (other != nullptr) {
      return bad(std::string("--tasks names the tasks, but ") + other + " chooses others",
                 "give one of the two");
    }
  }
  if (!kernelbench && !(settings.levels.empty() && settings.range.empty())) {
    return bad("--levels and --range are for KernelBench; " + settings.suite + " has task folders",
               "name folders with --tasks, or leave the option out");
  }
  return {};
}

std::string rule_text(const SelectSettings& settings, bool kernelbench) {
  std::string text = "All tasks";
  if (!settings.tasks.empty()) text = "The tasks " + settings.tasks;
  if (kernelbench && settings.tasks.empty()) {
    text += " of levels " + (settings.levels.empty() ? "1,2,3" : settings.levels);
    if (!settings.range.empty()) text += " with numbers " + settings.range;
  }
  text += ", less the excluded ones";
  if (settings.sample > 0) {
    text += "; of these, the " + std::to_string(settings.sample) +
            (kernelbench ? " of each level" : "") + " with the smallest XXH3-128 of (\"" +
            std::to_string(settings.seed) + "\", name)";
  }
  return text + ".";
}

}  // namespace

std::string task_label(const SuiteTask& task) {
  if (task.level == 0) return task.name;
  return std::to_string(task.level) + "/" + std::to_string(task.number);
}

Result<Selection> select_tasks(const SelectSettings& settings) {
  Selection selection;
  KP_ASSIGN(const auto all, all_tasks(absolute(settings.suite), &selection.kernelbench));
  selection.tasks = all;
  KP_TRY(check_conflicts(settings, selection.kernelbench));
  if (!settings.tasks.empty()) {
    KP_TRY(keep_named(settings.tasks, &selection.tasks));
  } else if (selection.kernelbench) {
    KP_TRY(keep_levels(settings.levels, &selection.tasks));
  }
  if (!settings.range.empty()) KP_TRY(keep_range(settings.range, &selection.tasks));
  KP_ASSIGN(const auto list, exclusions(settings, all, selection.kernelbench));
  for (const ExcludedTask& each : list) {
    const auto left = std::erase_if(
        selection.tasks, [&](const SuiteTask& task) { return task_label(task) == each.label; });
    if (left > 0) selection.excluded.push_back(each);
  }
  if (settings.sample > 0) take_sample(settings, &selection.tasks);
  selection.rule = rule_text(settings, selection.kernelbench);
  if (selection.tasks.empty()) {
    return bad("no task is left to run",
               "relax --levels, --range, --tasks or --exclude; --keep-degenerate runs the tasks of "
               "the built-in list");
  }
  return selection;
}

}  // namespace kernelpro
