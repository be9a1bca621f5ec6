// SPDX-License-Identifier: Apache-2.0
#include "measure/remote/stations.h"

#include <future>
#include <iterator>
#include <utility>

#include "base/files.h"
#include "base/json.h"
#include "machine/gpu_watch.h"
#include "measure/remote/connection.h"
#include "measure/remote/remote_station.h"
#include "measure/station/local.h"

namespace kernelpro {

namespace {

constexpr std::int64_t kMostSource = 4 << 20;

Json value_of(const std::string& json) { return parse_json(json).value_or(Json::object()); }

Stations stations_at(const std::vector<std::string>& addresses, const Task& task,
                     const StationSettings& settings) {
  std::vector<std::future<Stations>> opening;
  for (const std::string& address : addresses) {
    opening.push_back(std::async(
        std::launch::async, [&, address] { return remote_stations(address, task, settings); }));
  }
  Stations all;
  for (auto& each : opening) {
    Stations opened = each.get();
    all.insert(all.end(), std::make_move_iterator(opened.begin()),
               std::make_move_iterator(opened.end()));
  }
  return all;
}

}  // namespace

StationMaker stations_anywhere(std::shared_ptr<ModuleReference> module, ToolsAhead tools) {
  return [here = local_stations(std::move(module), std::move(tools))](
             const Task& task, const StationSettings& settings) {
    if (settings.stations.empty()) return here(task, settings);
    return stations_at(settings.stations, task, settings);
  };
}

Result<Host> Host::of(const std::vector<std::string>& addresses) {
  Host host;
  if (!addresses.empty()) {
    KP_ASSIGN(host.connection_, Connection::to(addresses.front()));
  }
  return host;
}

Result<std::vector<std::string>> Host::gpus(const std::vector<std::string>& named) const {
  if (here()) return choose_gpus(named);
  KP_ASSIGN(const auto answer, connection_->ask("gpus", dump_json({{"named", named}})));
  const Json json = value_of(answer);
  std::vector<std::string> gpus;
  for (const Json& gpu : JsonReader(json).array("gpus")) {
    if (gpu.is_string()) gpus.push_back(gpu.get<std::string>());
  }
  return gpus;
}

Result<bool> Host::has_cuda() const {
  KP_ASSERT(!here());
  KP_ASSIGN(const auto answer, connection_->ask("has-cuda", "{}"));
  return JsonReader(value_of(answer)).flag("usable");
}

Result<OpenedTask> Host::open(const std::string& path, const OpenSettings& settings) const {
  if (here() || !is_module_path(path)) return open_task(path, settings);
  KP_ASSIGN(const auto source, read_file(path, kMostSource));
  Json body = {{"name", basename(path)},
               {"source", source},
               {"target", target_name(settings.target)},
               {"dims", settings.dims},
               {"gpu", settings.gpu},
               {"python", settings.python},
               {"timeout_s", settings.timeout_s}};
  if (settings.precision) body["precision"] = precision_name(*settings.precision);
  if (!settings.start.empty()) {
    KP_ASSIGN(const auto start, read_file(settings.start, kMostSource));
    body["start"] = {{"name", basename(settings.start)}, {"source", start}};
  }
  KP_ASSIGN(const auto answer, connection_->ask("open", dump_json(body)));
  const Json json = value_of(answer);
  const JsonReader r(json);
  auto task = task_from_json(dump_json(r.object("task")));
  if (!task) {
    return fail(ErrorKind::kInternal, "the task came back damaged from " + connection_->name(),
                "install the same version of KernelPro on both sides");
  }
  OpenedTask opened;
  opened.task = std::move(*task);
  opened.task.folder = dirname(absolute(path));
  if (opened.task.module) opened.task.module->path = absolute(path);
  for (const Json& note : r.array("notes")) {
    if (note.is_string()) opened.notes.push_back(note.get<std::string>());
  }
  return opened;
}

}  // namespace kernelpro
