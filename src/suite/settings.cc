// SPDX-License-Identifier: Apache-2.0
#include "suite/settings.h"

#include "base/files.h"
#include "base/json.h"
#include "base/text.h"
#include "run/store/settings.h"

namespace kernelpro {

namespace {

constexpr int kVersion = 1;

std::string suite_path(const std::string& directory) { return join(directory, "suite.json"); }

Json tasks_json(const std::vector<SuiteTask>& tasks) {
  Json list = Json::array();
  for (const SuiteTask& task : tasks) {
    list.push_back(
        {{"name", task.name}, {"path", task.path}, {"level", task.level}, {"number", task.number}});
  }
  return list;
}

Json to_json(const SuiteSettings& s) {
  Json excluded = Json::array();
  for (const ExcludedTask& each : s.excluded) {
    excluded.push_back({{"task", each.label}, {"reason", each.reason}, {"by", each.by}});
  }
  Json arms = Json::array();
  for (const Arm& arm : s.arms) arms.push_back({{"name", arm.name}, {"values", arm.values}});
  return {{"version", kVersion},
          {"suite", s.suite},
          {"kernelbench", s.kernelbench},
          {"rule", s.rule},
          {"target", s.target},
          {"precision", s.precision ? std::string(precision_name(*s.precision)) : ""},
          {"python", s.python},
          {"baselines", s.baselines},
          {"replay_suite", s.replay_suite},
          {"arms", arms},
          {"run", parse_json(settings_to_json(s.run)).value_or(Json())},
          {"tasks", tasks_json(s.tasks)},
          {"excluded", excluded}};
}

// The members in which two objects differ: "seed (1 then, 2 now)".
void differences(const Json& then, const Json& now, std::vector<std::string>* found) {
  for (const auto& [name, value] : now.items()) {
    const Json* before = JsonReader(then).member(name.c_str());
    if (before != nullptr && *before == value) continue;
    if (before != nullptr && before->is_object() && value.is_object()) {
      differences(*before, value, found);
    } else if (before == nullptr || value.is_structured() || before->is_structured()) {
      found->push_back(name);
    } else {
      found->push_back(name + " (" + dump_json(*before) + " then, " + dump_json(value) + " now)");
    }
  }
}

}  // namespace

std::string suite_to_json(const SuiteSettings& settings) {
  return dump_json(to_json(settings), 2) + "\n";
}

std::optional<SuiteSettings> suite_from_json(const std::string& text) {
  const std::optional<Json> json = parse_json(text);
  if (!json || !json->is_object()) return std::nullopt;
  const JsonReader r(*json);
  if (r.integer("version") != kVersion) return std::nullopt;
  SuiteSettings s;
  s.suite = r.text("suite");
  s.kernelbench = r.flag("kernelbench");
  s.rule = r.text("rule");
  s.target = r.text("target", "auto");
  s.precision = precision_from_name(r.text("precision"));
  s.python = r.text("python");
  s.baselines = r.flag("baselines");
  s.replay_suite = r.text("replay_suite");
  const auto run = settings_from_json(dump_json(r.object("run")));
  if (!run) return std::nullopt;
  s.run = *run;
  for (const Json& each : r.array("tasks")) {
    const JsonReader task(each);
    s.tasks.push_back({task.text("name"), task.text("path"),
                       static_cast<int>(task.integer("level")),
                       static_cast<int>(task.integer("number"))});
  }
  for (const Json& each : r.array("excluded")) {
    const JsonReader task(each);
    s.excluded.push_back({task.text("task"), task.text("reason"), task.text("by")});
  }
  for (const Json& each : r.array("arms")) {
    Arm arm;
    arm.name = JsonReader(each).text("name");
    for (const auto& [name, value] : JsonReader(each).object("values").items()) {
      if (value.is_string()) arm.values[name] = value.get<std::string>();
    }
    s.arms.push_back(std::move(arm));
  }
  if (s.tasks.empty() || s.arms.empty()) return std::nullopt;
  return s;
}

Result<void> begin_suite(const SuiteSettings& settings) {
  const std::string path = suite_path(settings.directory);
  if (!exists(path)) {
    if (is_dir(settings.directory) && !list_dir(settings.directory).empty()) {
      return fail(ErrorKind::kBadInput,
                  "the folder " + settings.directory + " is not empty and holds no suite",
                  "name a new folder with --out");
    }
    KP_TRY(make_dirs(settings.directory));
    return write_file(path, suite_to_json(settings));
  }
  KP_TRY(read_suite(settings.directory));  // else damage would look like other settings
  KP_ASSIGN(const auto text, read_file(path));
  std::vector<std::string> changed;
  differences(parse_json(text).value_or(Json()), to_json(settings), &changed);
  if (changed.empty()) return {};
  return fail(ErrorKind::kBadInput,
              settings.directory + " was begun with other settings: " + join_text(changed, ", "),
              "continue with: kernelpro bench --out " + settings.directory +
                  ", or name another folder with --out");
}

Result<SuiteSettings> read_suite(const std::string& directory) {
  const std::string path = suite_path(directory);
  if (!exists(path)) {
    return fail(ErrorKind::kBadInput, directory + " holds no suite",
                "begin one: kernelpro bench SUITE --out " + directory);
  }
  KP_ASSIGN(const auto text, read_file(path));
  auto settings = suite_from_json(text);
  if (!settings) {
    return fail(ErrorKind::kStore, path + " is damaged or of another version",
                "restore it from a copy, or begin a new suite");
  }
  settings->directory = absolute(directory);
  return std::move(*settings);
}

std::string run_folder(const SuiteSettings& settings, const Arm& arm, const SuiteTask& task) {
  return join(join(settings.directory, arm.name), task.name);
}

}  // namespace kernelpro
