// SPDX-License-Identifier: Apache-2.0
#include "measure/station/baselines.h"

#include <algorithm>
#include <optional>

#include "base/files.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/process/subprocess.h"
#include "base/statistics/statistics.h"
#include "base/text.h"
#include "core/plan/refusal.h"
#include "task/reference/module_process.h"
#include "task/reference/python.h"

namespace kernelpro {

namespace {

constexpr double kStartTimeout = 120;  // importing torch on a cold machine
constexpr const char* kVersion = "baseline-3";

std::vector<std::string> kinds_of(const BaselineOrder& order, TargetKind target) {
  if (target == TargetKind::kCpu) return {"eager"};
  if (!order.compiled) return {"eager", "graph"};
  return {"eager", "graph", "compile", "max-autotune"};
}

class Process {
 public:
  Process(const BaselinePlace& place, std::string folder)
      : place_(place), folder_(std::move(folder)) {}

  // The process's answer; an Error if none can be started. If the process dies, `lost` says how,
  // and the next call starts another.
  Result<std::optional<Json>> ask(const Json& message, double timeout_s, std::string* lost) {
    if (!child_.running()) KP_TRY(start());
    if (child_.send(dump_json(message))) {
      const std::optional<Frame> frame = child_.receive(timeout_s);
      std::optional<Json> json = frame ? parse_json(frame->bytes) : std::nullopt;
      if (json && json->is_object()) return json;
    }
    limits_.wall_seconds = timeout_s;
    const Exit& exit = child_.finish();
    *lost = "the process " + exit.describe(limits_);
    if (const std::string advice = module_limit_advice(exit.kind); !advice.empty()) {
      *lost += "; " + advice;
    }
    if (exit.kind != Exit::Kind::kTimedOut && !exit.output.empty()) {
      const std::size_t from = exit.output.size() > 1000 ? exit.output.size() - 1000 : 0;
      *lost += "\n" + exit.output.substr(from);
    }
    child_ = Child();
    return std::optional<Json>();
  }

 private:
  Result<void> start() {
    KP_ASSIGN(process_, module_process({"baseline", place_.python, place_.target, place_.gpu,
                                        folder_, place_.memory_bytes}));
    limits_ = process_.command.limits;
    KP_ASSIGN(child_, Child::start(process_.command));
    return {};
  }

  const BaselinePlace& place_;
  const std::string folder_;  // of the module's file
  ModuleProcess process_;     // its scratch folder outlives the child
  Child child_;
  Limits limits_;
};

Timing timing_of(const Json& answer, const Case& c) {
  const JsonReader r(answer);
  std::vector<double> times;
  for (const Json& us : r.array("times")) {
    if (us.is_number() && us.get<double>() > 0) times.push_back(us.get<double>());
  }
  Timing timing;
  timing.case_name = c.name;
  timing.method = r.text("method");
  if (times.empty()) return timing;
  const Interval interval = median_interval(times);
  timing.median_us = interval.mid;
  timing.low_us = interval.low;
  timing.high_us = interval.high;
  timing.samples = static_cast<int>(times.size());
  return timing;
}

std::string cache_path(const Task& task, const Case& c, const BaselineOrder& order,
                       const BaselinePlace& place, const std::string& torch) {
  std::string dims;
  for (const auto& [name, value] : c.dims) dims += name + "=" + std::to_string(value) + " ";
  const std::string key =
      hash_hex({kVersion, task.content_hash(), c.name, dims, precision_name(task.precision),
                target_name(place.target), place.machine, place.gpu, torch,
                order.compiled ? "compiled" : "plain"});
  return join(join(cache_dir(), "baselines"), key + ".json");
}

}  // namespace

Result<std::vector<Baseline>> time_baselines(const Task& task, const Case& c,
                                             const BaselineOrder& order,
                                             const BaselinePlace& place) {
  if (!task.module) {
    return fail(ErrorKind::kBadInput, "the task " + task.name + " has no PyTorch module",
                "baselines are PyTorch's own times; give the task as a .py file with Model");
  }
  KP_ASSIGN(const PythonFacts python, find_python(place.python));
  const std::string path = cache_path(task, c, order, place, python.torch_version);
  const std::vector<std::string> kinds = kinds_of(order, place.target);
  if (order.cached && exists(path)) {
    const Result<std::string> text = read_file(path, 1 << 20);
    const std::vector<Baseline> known = text ? baselines_from_json(*text) : std::vector<Baseline>();
    if (known.size() == kinds.size()) return known;
  }
  const std::string& file = task.module->path;
  Process process(place, file.empty() ? "" : dirname(absolute(file)));
  KP_ASSIGN(const double timeout_s, module_seconds(order.timeout_s));
  std::string lost;
  KP_ASSIGN(const std::optional<Json> hello, process.ask({{"do", "hello"}}, kStartTimeout, &lost));
  if (!hello) {
    return fail(ErrorKind::kEnvironment, "PyTorch does not start: " + lost,
                "run `" + python.interpreter + " -c \"import torch\"` and fix what it reports");
  }
  std::vector<Baseline> baselines;
  for (const std::string& kind : kinds) {
    lost.clear();
    KP_ASSIGN(const std::optional<Json> answer,
              process.ask({{"do", "time"},
                           {"source", task.module->source},
                           {"path", task.module->path},
                           {"dims", c.dims},
                           {"precision", precision_name(task.precision)},
                           {"kind", kind},
                           {"seconds", order.seconds}},
                          timeout_s, &lost));
    Baseline baseline;
    baseline.name = kind;
    if (!answer) {
      baseline.error = lost;
    } else if (const JsonReader r(*answer); r.member("error") != nullptr) {
      if (refusal_kind(r.text("rule")) == RefusalKind::kEnvironment) {
        return fail(ErrorKind::kEnvironment, r.text("error"), r.text("next"));
      }
      baseline.error = r.text("error");
    } else {
      baseline.timing = timing_of(*answer, c);
      if (baseline.timing.samples == 0) baseline.error = "it gave no times";
    }
    baselines.push_back(std::move(baseline));
  }
  // A failure may be the machine's, and a cache that cannot be written costs only time.
  const bool whole =
      std::ranges::all_of(baselines, [](const Baseline& each) { return each.error.empty(); });
  if (order.cached && whole && make_dirs(dirname(path))) {
    static_cast<void>(write_file(path, baselines_to_json(baselines)));
  }
  return baselines;
}

}  // namespace kernelpro
