// SPDX-License-Identifier: Apache-2.0
#include "measure/remote/service.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <utility>
#include <vector>

#include "base/json.h"
#include "machine/gpu_watch.h"
#include "measure/ceilings/ceilings.h"
#include "measure/remote/frames.h"
#include "measure/station/local.h"
#include "task/open/open_task.h"
#include "task/reference/module_reference.h"

namespace kernelpro {

namespace {

Json value_of(const std::string& json) { return parse_json(json).value_or(Json::object()); }

tl::unexpected<Error> damaged(const std::string& verb) {
  return fail(ErrorKind::kInternal, "the order \"" + verb + "\" arrived damaged",
              "install the same version of KernelPro on both sides");
}

// A file of the client's, by its name alone.
Result<std::string> stored(const std::string& folder, const std::string& name,
                           const std::string& source) {
  const std::string path = join(folder, basename(name.empty() ? "task.py" : name));
  KP_TRY(make_dirs(folder));
  KP_TRY(write_file(path, source));
  return path;
}

}  // namespace

struct Service::Group {
  Task task;
  Stations stations;
  // One measurement at a time at each; `prepared` is guarded by it.
  struct Seat {
    std::mutex mutex;
    bool prepared = false;
  };
  std::vector<std::unique_ptr<Seat>> seats;

  // REQUIRES: the seat's mutex is held.
  Result<void> ready(std::size_t index) {
    if (seats[index]->prepared) return {};
    KP_TRY((*stations[index])->prepare());
    seats[index]->prepared = true;
    return {};
  }
};

Service::Service(StationMaker maker) : maker_(std::move(maker)) {}

Service::~Service() {
  for (auto& [key, group] : groups_) close_all(&group->stations);
}

// What is asked of the machine:
//   open     {name, source, target, dims, precision, start: {name, source}, gpu, python, timeout_s}
//            -> {task, notes}: a PyTorch file as a task
//   has-cuda {} -> {usable}: whether the cuda target can be used here
//   gpus     {named: [...]} -> {gpus: [...]}: as choose_gpus (machine/gpu_watch.h)
//   stations {task, settings} -> {group, stations: [{machine, compiler, name} or {error}...]}
//   close    {group} -> {}
// and of a station, with {group, station: index} in the body (rows of kAtStation).
Result<std::string> Service::answer(const std::string& verb, const std::string& body,
                                    const Phase& phase) {
  static constexpr struct {
    std::string_view verb;
    Result<std::string> (Service::*answer)(const std::string& body);
  } kOfMachine[] = {{"open", &Service::open_task_here},
                    {"has-cuda", &Service::has_cuda},
                    {"gpus", &Service::gpus},
                    {"stations", &Service::open_stations},
                    {"close", &Service::close}};
  for (const auto& row : kOfMachine) {
    if (row.verb == verb) return (this->*row.answer)(body);
  }
  return at_station(verb, body, phase);
}

Result<std::string> Service::has_cuda(const std::string&) {
  return dump_json({{"usable", describe_cuda_machine().has_value()}});
}

Result<std::string> Service::gpus(const std::string& body) {
  const Json json = value_of(body);
  std::vector<std::string> named;
  for (const Json& each : JsonReader(json).array("named")) {
    if (each.is_string()) named.push_back(each.get<std::string>());
  }
  KP_ASSIGN(const auto gpus, choose_gpus(named));
  return dump_json({{"gpus", gpus}});
}

// Waits for what is being measured there.
Result<std::string> Service::close(const std::string& body) {
  const std::string nothing = "{}";
  GroupPtr group;
  {
    const std::lock_guard lock(mutex_);
    const auto found = groups_.find(JsonReader(value_of(body)).text("group"));
    if (found == groups_.end()) return nothing;
    group = std::move(found->second);
    groups_.erase(found);
  }
  std::vector<std::unique_lock<std::mutex>> locks;
  for (const auto& seat : group->seats) locks.emplace_back(seat->mutex);
  close_all(&group->stations);
  return nothing;
}

Result<std::string> Service::open_task_here(const std::string& body) {
  const Json json = value_of(body);
  const JsonReader r(json);
  OpenSettings open;
  open.target = target_from_name(r.text("target")).value_or(TargetKind::kCpu);
  for (const auto& [name, value] : r.object("dims").items()) {
    if (value.is_number_integer()) open.dims[name] = value.get<std::int64_t>();
  }
  open.precision = precision_from_name(r.text("precision"));
  open.gpu = r.text("gpu");
  open.python = r.text("python");
  open.timeout_s = r.real("timeout_s", open.timeout_s);
  open.meanwhile = measure_ceilings;
  std::string folder;
  {
    const std::lock_guard lock(mutex_);
    folder = join(files_.path(), std::to_string(++last_));
  }
  KP_ASSIGN(const auto path, stored(folder, r.text("name"), r.text("source")));
  const JsonReader start(r.object("start"));
  if (r.member("start") != nullptr) {
    KP_ASSIGN(open.start, stored(join(folder, "start"), start.text("name"), start.text("source")));
  }
  KP_ASSIGN(auto opened, open_task(path, open));
  if (opened.module != nullptr) {
    const std::lock_guard lock(mutex_);
    modules_[opened.task.content_hash()] = std::move(opened.module);
  }
  return dump_json({{"task", value_of(task_to_json(opened.task))}, {"notes", opened.notes}});
}

Result<std::string> Service::open_stations(const std::string& body) {
  const Json json = value_of(body);
  const JsonReader r(json);
  auto task = task_from_json(dump_json(r.object("task")));
  auto settings = station_settings_from_json(dump_json(r.object("settings")));
  if (!task || !settings) return damaged("stations");
  settings->stations.clear();
  auto group = std::make_shared<Group>();
  group->task = std::move(*task);
  std::shared_ptr<ModuleReference> module;
  std::string key, folder;
  {
    const std::lock_guard lock(mutex_);
    key = std::to_string(++last_);
    folder = join(files_.path(), key);
    const auto found = modules_.find(group->task.content_hash());
    if (found != modules_.end()) module = std::move(found->second);
    if (found != modules_.end()) modules_.erase(found);
  }
  group->task.folder = folder;
  if (group->task.module) {
    KP_ASSIGN(group->task.module->path,
              stored(folder, group->task.module->path, group->task.module->source));
  }
  const StationMaker maker = maker_ ? maker_ : local_stations(std::move(module));
  group->stations = maker(group->task, *settings);
  Json stations = Json::array();
  for (const auto& station : group->stations) {
    group->seats.push_back(std::make_unique<Group::Seat>());
    if (!station) {
      stations.push_back({{"error", value_of(error_to_json(station.error()))}});
      continue;
    }
    stations.push_back({{"machine", value_of(machine_to_json((*station)->machine()))},
                        {"compiler", (*station)->compiler()},
                        {"name", (*station)->name()}});
  }
  const std::lock_guard lock(mutex_);
  groups_[key] = group;
  return dump_json({{"group", key}, {"stations", stations}});
}

namespace {

// What an order is about; its seat's mutex is held where the row says so.
struct Asked {
  Station& station;
  const JsonReader& body;
  const Phase& phase;
  std::function<Result<void>()> ready;  // prepares the station if it is not yet
};

Result<std::string> do_prepare(const Asked& asked) {
  KP_TRY(asked.ready());
  return std::string("{}");
}

Result<std::string> do_begin(const Asked& asked) {
  const auto candidate = candidate_from_json(dump_json(asked.body.object("candidate")));
  if (!candidate) return damaged("begin");
  KP_ASSIGN(const auto built, asked.station.begin(*candidate, nullptr).get());
  return built_to_json(built);
}

Result<std::string> do_build(const Asked& asked) {
  const auto candidate = candidate_from_json(dump_json(asked.body.object("candidate")));
  if (!candidate) return damaged("build");
  KP_ASSIGN(const auto built, asked.station.build(*candidate));
  return built_to_json(built);
}

Result<std::string> do_drop(const Asked& asked) {
  asked.station.drop_builds();
  return std::string("{}");
}

Result<std::string> do_measure(const Asked& asked) {
  const auto order = order_from_json(dump_json(asked.body.object("order")));
  if (!order) return damaged("measure");
  if (!order->inspect) KP_TRY(asked.ready());
  KP_ASSIGN(const auto measured, asked.station.measure(*order, asked.phase));
  return measured_to_json(measured);
}

Result<std::string> do_baselines(const Asked& asked) {
  const auto order = baseline_order_from_json(dump_json(asked.body.object("order")));
  if (!order) return damaged("baselines");
  KP_ASSIGN(const auto baselines, asked.station.baselines(*order));
  return dump_json({{"baselines", value_of(baselines_to_json(baselines))}});
}

Result<std::string> do_remeasure(const Asked& asked) {
  KP_ASSIGN(const auto ceilings, asked.station.remeasure());
  if (!ceilings) return std::string("{}");
  Machine machine = asked.station.machine();
  machine.ceilings = *ceilings;
  return dump_json({{"machine", value_of(machine_to_json(machine))}});
}

constexpr struct StationVerb {
  std::string_view verb;
  bool one_at_a_time;  // at each station
  Result<std::string> (*answer)(const Asked&);
} kAtStation[] = {
    {"prepare", true, do_prepare},      // {} -> {}
    {"begin", false, do_begin},         // {candidate} -> Built
    {"build", false, do_build},         // {candidate} -> Built
    {"drop", false, do_drop},           // {} -> {}
    {"measure", true, do_measure},      // {order} -> Measured
    {"baselines", true, do_baselines},  // {order} -> {baselines}
    {"remeasure", true, do_remeasure},  // {} -> {machine}, or {}
};

}  // namespace

Result<std::string> Service::at_station(const std::string& verb, const std::string& body,
                                        const Phase& phase) {
  const StationVerb* row = std::find_if(std::begin(kAtStation), std::end(kAtStation),
                                        [&](const auto& r) { return r.verb == verb; });
  if (row == std::end(kAtStation)) return damaged(verb);
  const Json json = value_of(body);
  const JsonReader r(json);
  GroupPtr group;
  {
    const std::lock_guard lock(mutex_);
    const auto found = groups_.find(r.text("group"));
    if (found != groups_.end()) group = found->second;
  }
  const std::size_t index = r.natural("station");
  if (group == nullptr || index >= group->stations.size() || !group->stations[index]) {
    return fail(ErrorKind::kEnvironment, "this process has not opened the station that was named",
                "open it again", Cause::kGone);
  }
  std::unique_lock<std::mutex> lock;
  if (row->one_at_a_time) lock = std::unique_lock(group->seats[index]->mutex);
  return row->answer({**group->stations[index], r, phase, [&] { return group->ready(index); }});
}

}  // namespace kernelpro
