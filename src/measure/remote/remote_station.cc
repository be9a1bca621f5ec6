// SPDX-License-Identifier: Apache-2.0
#include "measure/remote/remote_station.h"

#include <mutex>
#include <utility>

#include "base/json.h"
#include "measure/remote/connection.h"
#include "measure/remote/frames.h"

namespace kernelpro {

namespace {

constexpr int kMostRevivals = 3;  // of a resident, for one order

Json value_of(const std::string& json) { return parse_json(json).value_or(Json::object()); }

template <class T>
Result<T> whole(std::optional<T> value, const std::string& name) {
  if (value) return std::move(*value);
  return fail(ErrorKind::kInternal, "the answer of " + name + " arrived damaged",
              "install the same version of KernelPro on both sides");
}

// Stations that were opened together at one address.
class Group {
 public:
  Group(std::shared_ptr<Connection> connection, const Task& task, StationSettings settings)
      : connection_(std::move(connection)) {
    settings.stations.clear();
    settings.include_dirs.clear();
    order_ = dump_json({{"task", value_of(task_to_json(task))},
                        {"settings", value_of(station_settings_to_json(settings))}});
  }
  ~Group() {
    const std::lock_guard lock(mutex_);
    if (!key_.empty())
      connection_->begin("close", dump_json({{"group", key_}}), [](const auto&) {});
  }

  Connection& connection() { return *connection_; }

  // The stations as the other end describes them.
  Result<Json> open() {
    const std::lock_guard lock(mutex_);
    return open_locked();
  }
  std::string key() {
    const std::lock_guard lock(mutex_);
    return key_;
  }
  // After `gone` turned out to be unknown there; another station may have been quicker.
  Result<void> open_again(const std::string& gone) {
    const std::lock_guard lock(mutex_);
    if (key_ != gone) return {};
    KP_TRY(open_locked());
    return {};
  }

 private:
  Result<Json> open_locked() {
    KP_ASSIGN(const auto answer, connection_->ask("stations", order_));
    const Json said = value_of(answer);
    const JsonReader json(said);
    key_ = json.text("group");
    return Json(json.array("stations"));
  }

  const std::shared_ptr<Connection> connection_;
  std::string order_;
  std::mutex mutex_;
  std::string key_;
};

class RemoteStation : public Station {
 public:
  RemoteStation(std::shared_ptr<Group> group, std::size_t index, Machine machine,
                std::string compiler, const std::string& name)
      : group_(std::move(group)),
        index_(index),
        machine_(std::move(machine)),
        compiler_(std::move(compiler)),
        name_(group_->connection().name() + (name.starts_with("GPU") ? ", " + name : "")) {}

  const Machine& machine() const override { return machine_; }
  std::string compiler() const override { return compiler_; }
  std::string name() const override { return name_; }

  Result<void> prepare() override {
    KP_TRY(ask("prepare", Json::object()));
    return {};
  }
  Building begin(const Candidate& candidate, std::function<void()> done) override;
  void drop_builds() override { static_cast<void>(ask("drop", Json::object())); }
  Result<Built> build(const Candidate& candidate) override {
    KP_ASSIGN(const auto answer, ask("build", with(candidate)));
    return whole(built_from_json(answer), name_);
  }
  Result<Measured> measure(const Order& order, const Phase& phase) override {
    KP_ASSIGN(const auto answer,
              ask("measure", {{"order", value_of(order_to_json(order))}}, phase));
    return whole(measured_from_json(answer), name_);
  }
  Result<std::vector<Baseline>> baselines(const BaselineOrder& order) override {
    KP_ASSIGN(const auto answer,
              ask("baselines", {{"order", value_of(baseline_order_to_json(order))}}));
    return baselines_from_json(dump_json(JsonReader(value_of(answer)).array("baselines")));
  }
  Result<std::optional<Ceilings>> remeasure() override {
    KP_ASSIGN(const auto answer, ask("remeasure", Json::object()));
    const Json json = value_of(answer);
    if (JsonReader(json).member("machine") == nullptr) return std::optional<Ceilings>();
    KP_ASSIGN(const auto machine, whole(machine_from_json(dump_json(json["machine"])), name_));
    return std::optional(machine.ceilings);
  }

 private:
  static Json with(const Candidate& candidate) {
    return {{"candidate", value_of(candidate_to_json(candidate))}};
  }
  std::string body(Json json, const std::string& key) const {
    json["group"] = key;
    json["station"] = index_;
    return dump_json(json);
  }
  Result<std::string> ask(const std::string& verb, const Json& json, const Phase& phase = nullptr) {
    for (int revivals = 0;; ++revivals) {
      const std::string key = group_->key();
      auto answer = group_->connection().ask(verb, body(json, key), phase);
      if (answer || answer.error().cause != Cause::kGone || revivals == kMostRevivals) {
        return answer;
      }
      KP_TRY(group_->open_again(key));
    }
  }

  const std::shared_ptr<Group> group_;
  const std::size_t index_;
  const Machine machine_;
  const std::string compiler_;
  const std::string name_;
};

// A build ahead that a resident has taken along is an error that nobody waits for long: `measure`
// builds anew.
Building RemoteStation::begin(const Candidate& candidate, std::function<void()> done) {
  auto promise = std::make_shared<std::promise<Result<Built>>>();
  Building building = promise->get_future().share();
  group_->connection().begin(
      "begin", body(with(candidate), group_->key()),
      [promise, done = std::move(done), name = name_](Result<std::string> answer) {
        if (answer) {
          promise->set_value(whole(built_from_json(*answer), name));
        } else {
          promise->set_value(tl::unexpected<Error>(std::move(answer.error())));
        }
        if (done) done();
      });
  return building;
}

}  // namespace

Stations remote_stations(const std::string& address, const Task& task,
                         const StationSettings& settings) {
  Stations stations;
  auto connection = Connection::to(address);
  if (!connection) {
    stations.emplace_back(tl::unexpected<Error>(std::move(connection.error())));
    return stations;
  }
  auto group = std::make_shared<Group>(std::move(*connection), task, settings);
  auto opened = group->open();
  if (!opened) {
    stations.emplace_back(tl::unexpected<Error>(std::move(opened.error())));
    return stations;
  }
  for (std::size_t i = 0; i < opened->size(); ++i) {
    const JsonReader r((*opened)[i]);
    auto machine = machine_from_json(dump_json(r.object("machine")));
    if (machine) {
      stations.push_back(std::make_unique<RemoteStation>(group, i, std::move(*machine),
                                                         r.text("compiler"), r.text("name")));
    } else {
      stations.emplace_back(tl::unexpected<Error>(error_from_json(dump_json(r.object("error")))));
    }
  }
  if (stations.empty()) {
    stations.emplace_back(tl::unexpected<Error>(
        Error{ErrorKind::kInternal, group->connection().name() + " opened no station",
              "install the same version of KernelPro on both sides"}));
  }
  return stations;
}

}  // namespace kernelpro
