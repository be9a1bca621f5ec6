// SPDX-License-Identifier: Apache-2.0
#include "serve/mcp/desk.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/files.h"
#include "base/text.h"
#include "measure/ceilings/ceilings.h"
#include "run/choices.h"
#include "run/proposers.h"
#include "task/load/loader.h"

namespace kernelpro {

namespace fs = std::filesystem;

namespace {

constexpr int kDepth = 5;           // levels of folders searched below a root
constexpr int kMostLooked = 20000;  // files and folders searched in all roots together
constexpr std::size_t kMostTasks = 1000;
constexpr std::int64_t kTomlBytes = 1 << 20;
constexpr std::int64_t kModuleBytes = 256 << 10;
// Prepared targets hold memory; only one task at a time may hold the GPU's.
constexpr std::size_t kWarmCpu = 4;
constexpr std::size_t kWarmCuda = 1;

std::string canonical(const std::string& path) {
  std::error_code error;
  const fs::path real = fs::weakly_canonical(path, error);
  return error ? absolute(path) : real.string();
}

bool within(const std::string& path, const std::string& root) {
  return path == root || root == "/" || path.starts_with(root + "/");
}

bool is_task_folder(const std::string& path) { return exists(join(path, "task.toml")); }

// Whether the text looks like a KernelBench module.
bool is_module_file(const std::string& path) {
  if (!is_module_path(path)) return false;
  const auto text = read_file(path, kModuleBytes);
  return text && contains(*text, "class Model(") && contains(*text, "def get_inputs(");
}

std::string summary_of(const std::string& path) {
  if (is_module_path(path)) return "a PyTorch module";
  const auto text = read_file(join(path, "task.toml"), kTomlBytes);
  const auto task =
      text ? parse_task(*text, path) : Result<Task>(tl::unexpected<Error>(text.error()));
  if (!task) return "cannot be opened: " + clip(printable(task.error().message), 200);
  return printable(task->summary);
}

struct TaskSearch {
  std::vector<std::string> found;
  int looked = 0;

  void look(const std::string& path, int depth) {
    if (++looked > kMostLooked || found.size() >= kMostTasks) return;
    if (is_dir(path)) {
      if (is_task_folder(path)) return found.push_back(path);
      if (depth == 0) return;
      for (const std::string& name : list_dir(path)) {
        if (name.starts_with('.') || name == "build" || name == "node_modules") continue;
        const std::string below = join(path, name);
        std::error_code error;
        if (!fs::is_symlink(below, error)) look(below, depth - 1);
      }
    } else if (is_module_file(path)) {
      found.push_back(path);
    }
  }
};

}  // namespace

Desk::Desk(DeskSettings settings)
    : settings_(std::move(settings)), runners_(settings_.runs), knowledge_(knowledge_folder()) {}

std::vector<TaskEntry> Desk::tasks() const {
  std::vector<TaskEntry> tasks;
  std::set<std::string> names;
  TaskSearch search;
  for (const std::string& given : settings_.roots) {
    const std::string root = canonical(given);
    search.found.clear();
    search.look(root, kDepth);
    for (const std::string& path : search.found) {
      std::string name = path == root ? basename(path) : path.substr(root.size() + (root != "/"));
      if (!names.insert(name).second) name = path;
      tasks.push_back({name, path, summary_of(path)});
    }
  }
  return tasks;
}

Result<std::string> Desk::find_task(const std::string& name) const {
  for (const std::string& given : settings_.roots) {
    const std::string root = canonical(given);
    const std::string plain = name.starts_with('/') ? name : join(root, name);
    for (const std::string& path : {canonical(plain), root}) {
      if (path == root && name != basename(root) && canonical(plain) != root) continue;
      if (within(path, root) && (is_task_folder(path) || is_module_file(path))) return path;
    }
  }
  std::vector<std::string> names;
  for (const TaskEntry& each : tasks()) {
    // A short name is enough; the first match wins.
    if (basename(each.path) == name) return each.path;
    if (names.size() < 20) names.push_back(each.name);
  }
  return fail(
      ErrorKind::kBadInput, "there is no task " + clip(printable(name), 200),
      names.empty()
          ? "this server's folders hold no task: add one (make_task), or start it with others"
          : "list_tasks names them: " + join_text(names, ", "));
}

Result<std::string> Desk::find_file(const std::string& name) const {
  for (const std::string& given : settings_.roots) {
    const std::string root = canonical(given);
    const std::string path = canonical(name.starts_with('/') ? name : join(root, name));
    if ((settings_.trusted || within(path, root)) && exists(path)) return path;
  }
  return fail(ErrorKind::kBadInput, "there is no file " + clip(printable(name), 200),
              settings_.trusted
                  ? "give its absolute path, or one from " + absolute(settings_.roots.front())
                  : "only files below the folders of this server can be read");
}

Result<std::string> Desk::task_folder(const std::string& name, bool* again) {
  const std::string root = canonical(settings_.roots.front());
  if (!is_dir(root) || is_task_folder(root)) {
    return fail(ErrorKind::kBadInput, "this server serves the task " + root + " alone",
                "start it with a folder for tasks: kernelpro mcp DIR");
  }
  std::string path = join(root, name);
  const std::lock_guard<std::mutex> lock(mutex_);
  *again = made_.contains(path);
  if (!*again && exists(path)) {
    return fail(ErrorKind::kBadInput, path + " exists already",
                "choose another name; tasks of others are not changed here");
  }
  return path;
}

void Desk::made(const std::string& path) {
  const std::lock_guard<std::mutex> lock(mutex_);
  made_.insert(path);
}

void Desk::add_options(const TaskChoice& choice, std::vector<std::string>* arguments) const {
  const auto put = [&](const std::string& option, const std::string& value) {
    if (!value.empty()) arguments->insert(arguments->end(), {option, value});
  };
  if (choice.target.empty()) put("--target", settings_.target);
  const std::string& target = choice.target.empty() ? settings_.target : choice.target;
  if (target_from_name(target) != TargetKind::kCpu) put("--gpu", settings_.gpu);
  put("--python", settings_.python);
  for (const std::string& each : settings_.stations) put("--station", each);
  for (const std::string& each : settings_.include_dirs) put("--include", each);
  put("--profile", std::string(counter_set_name(settings_.counters)));
  put("--timeout", number(settings_.timeout_s));
  if (settings_.record.empty()) arguments->push_back("--no-record");
}

void Desk::cool() {
  std::vector<std::shared_ptr<Sitting>> all;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    all.assign(recent_.begin(), recent_.end());
  }
  for (const auto& each : all) each->cool();
}

Result<Desk::Key> Desk::key_of(const TaskChoice& choice) const {
  KP_ASSIGN(auto path, find_task(choice.task));
  return Key{std::move(path), choice.target.empty() ? settings_.target : choice.target,
             choice.precision};
}

Result<OpenedTask> Desk::open(const Key& key, TargetKind* target) const {
  OpenSettings settings;
  settings.meanwhile = measure_ceilings;
  settings.precision = key.precision;
  settings.gpu = settings_.gpu;
  settings.python = settings_.python;
  const bool module = is_module_path(key.path);
  if (module) {
    KP_ASSIGN(settings.target, choose_target(settings_.host, nullptr, key.target));
  } else if (const auto named = target_from_name(key.target)) {
    settings.target = *named;
  }
  KP_ASSIGN(auto opened, settings_.host.open(key.path, settings));
  *target = settings.target;
  if (!module) {
    KP_ASSIGN(*target, choose_target(settings_.host, &opened.task, key.target));
  }
  return opened;
}

Result<const Task*> Desk::read_task(const TaskChoice& choice, TargetKind* target) {
  KP_ASSIGN(auto key, key_of(choice));
  // Reread a folder, because its files may have changed. Reading a module needs PyTorch: cache it.
  auto known = read_.find(key);
  if (known == read_.end() || !is_module_path(key.path)) {
    TargetKind kind = TargetKind::kCpu;
    KP_ASSIGN(auto opened, open(key, &kind));
    known = read_.insert_or_assign(key, std::pair(std::move(opened.task), kind)).first;
  }
  *target = known->second.second;
  return &known->second.first;
}

void Desk::make_room(const Sitting* next) {
  std::vector<std::shared_ptr<Sitting>> others;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    others.assign(recent_.begin(), recent_.end());
  }
  std::size_t cpu = 1, cuda = 1;  // counts `next`, whatever its target
  for (const auto& each : others) {
    if (each.get() == next || !each->warm()) continue;
    const bool gpu = each->settings().target == TargetKind::kCuda;
    if (gpu ? ++cuda > kWarmCuda : ++cpu > kWarmCpu) each->cool();
  }
}

std::shared_ptr<Sitting> Desk::at(const std::shared_ptr<Sitting>& sitting) {
  if (!sitting->warm()) make_room(sitting.get());
  const std::lock_guard<std::mutex> lock(mutex_);
  recent_.remove(sitting);
  recent_.push_front(sitting);
  return sitting;
}

Result<std::shared_ptr<Sitting>> Desk::sit_again(const TaskChoice& choice) {
  KP_ASSIGN(const auto sitting, begun(choice));
  return at(sitting);
}

Result<std::shared_ptr<Sitting>> Desk::sit(const TaskChoice& choice, Ticket& ticket) {
  KP_ASSIGN(auto key, key_of(choice));
  {
    std::unique_lock<std::mutex> lock(mutex_);
    const auto found = runs_.find(key);
    if (found != runs_.end()) {
      const auto sitting = found->second;
      lock.unlock();
      return at(sitting);
    }
  }
  ticket.phase("opening the task");
  RunSettings settings;
  settings.python = settings_.python;
  KP_ASSIGN(auto opened, open(key, &settings.target));
  // "auto" may resolve to a target that a client named before.
  const Key resolved{key.path, std::string(target_name(settings.target)), key.precision};
  {
    std::unique_lock<std::mutex> lock(mutex_);
    if (const auto found = runs_.find(resolved); found != runs_.end()) {
      const auto sitting = runs_[key] = found->second;
      lock.unlock();
      return at(sitting);
    }
  }
  make_room(nullptr);
  settings.proposer = kMcpName;
  settings.directory = new_run_directory(opened.task, settings.target, settings_.runs);
  settings.gpu = settings_.gpu;
  settings.stations = settings_.stations;
  settings.include_dirs = settings_.include_dirs;
  settings.record = settings_.record;
  settings.facts = settings_.facts;
  settings.timeout_s = settings_.timeout_s;
  settings.counters = settings_.counters;
  auto sitting = Sitting::open(
      std::move(opened.task), settings, stations_anywhere(),
      [&](const std::string& phase) { ticket.phase(phase); },
      stations_anywhere(std::move(opened.module)));
  if (!sitting) {
    drop_run_directory(settings.directory);
    return tl::unexpected<Error>(std::move(sitting.error()));
  }
  const std::shared_ptr<Sitting> made = std::move(*sitting);
  at(made);
  const std::lock_guard<std::mutex> lock(mutex_);
  runs_[key] = runs_[resolved] = made;
  return made;
}

Result<std::shared_ptr<Sitting>> Desk::begun(const TaskChoice& choice) const {
  const Error none{ErrorKind::kBadInput,
                   "nothing was evaluated yet" +
                       (choice.task.empty() ? "" : " for the task " + printable(choice.task)),
                   "call evaluate first"};
  std::optional<Key> key;
  if (!choice.task.empty()) {
    KP_ASSIGN(key, key_of(choice));
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  if (key) {
    if (const auto found = runs_.find(*key); found != runs_.end()) return found->second;
    // If the task has only one run, target and precision may be omitted.
    std::shared_ptr<Sitting> only;
    for (const auto& sitting : recent_) {
      for (const auto& [each, run] : runs_) {
        const bool fits = run == sitting && each.path == key->path &&
                          (choice.target.empty() || each.target == choice.target) &&
                          (!choice.precision || each.precision == choice.precision);
        if (fits && !only) only = sitting;
      }
    }
    if (only) return only;
    return tl::unexpected<Error>(none);
  }
  if (recent_.empty()) return tl::unexpected<Error>(none);
  return recent_.front();
}

}  // namespace kernelpro
