// SPDX-License-Identifier: Apache-2.0
#include "core/evidence/counters.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "base/json.h"
#include "core/evidence/metrics.h"
#include "core/evidence/missing_json.h"

namespace kernelpro {

namespace {

struct SetName {
  CounterSet set;
  std::string_view name;
};
constexpr SetName kSets[] = {
    {CounterSet::kOff, "off"}, {CounterSet::kTriage, "triage"}, {CounterSet::kFull, "full"}};

// The bottleneck model's counters and the shape of loads: three passes on GH100. Stall reasons
// would cost more.
constexpr std::string_view kTriage[] = {
    "gpu__time_duration.sum",
    "gpc__cycles_elapsed.max",
    "sm__cycles_active.avg",
    "sm__cycles_active.max",
    "sm__cycles_active.min",
    "dram__bytes_read.sum",
    "dram__bytes_write.sum",
    "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed",
    "lts__t_sectors.avg.pct_of_peak_sustained_elapsed",
    "lts__d_atomic_input_cycles_active.avg.pct_of_peak_sustained_elapsed",
    "lts__t_sectors_srcunit_tex.sum",
    "l1tex__data_pipe_lsu_wavefronts.avg.pct_of_peak_sustained_elapsed",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
    "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",
    "smsp__issue_active.avg.per_cycle_active",
    "smsp__warps_active.avg.per_cycle_active",
    "smsp__average_warp_latency_per_inst_issued.ratio",
    "sm__inst_executed_pipe_lsu.avg.pct_of_peak_sustained_elapsed",
    "sm__inst_executed_pipe_xu.avg.pct_of_peak_sustained_elapsed",
    "sm__pipe_fma_cycles_active.avg.pct_of_peak_sustained_elapsed",
    "sm__pipe_alu_cycles_active.avg.pct_of_peak_sustained_elapsed",
    "sm__pipe_fp64_cycles_active.avg.pct_of_peak_sustained_elapsed",
    "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed",
};

// Always 1: whenever a scheduler issues, one warp is selected. Read from reports that have it.
constexpr std::string_view kNotCollected[] = {
    "smsp__average_warps_issue_stalled_selected_per_issue_active.ratio",
};

// Alternative names of the same counter, by prefix of the chip's name.
struct Alias {
  std::string_view metric, chip, name;
};
constexpr Alias kAliases[] = {
    {"dram__bytes_read.sum", "GB20", "dram__bytes_op_read.sum"},
    {"dram__bytes_write.sum", "GB20", "dram__bytes_op_write.sum"},
    {"sm__inst_executed_pipe_tensor_op_hmma.sum", "GB",
     "sm__inst_executed_pipe_tensor_subpipe_hmma.sum"},
    // Asynchronous matrix instructions of data-center Blackwell: tcgen05.
    {"sm__inst_executed_pipe_tensor_op_gmma.sum", "GB1", "sm__inst_executed_pipe_tc.sum"},
};

// Skips values that are not finite numbers.
std::map<std::string, double> numbers(const Json& object) {
  std::map<std::string, double> all;
  for (const auto& [name, value] : object.items()) {
    if (value.is_number() && std::isfinite(value.get<double>())) all[name] = value.get<double>();
  }
  return all;
}

std::optional<LaunchCounters> launch_from(const Json& json) {
  if (!json.is_object()) return std::nullopt;
  const JsonReader r(json);
  LaunchCounters launch;
  launch.function = r.text("function");
  launch.node = static_cast<int>(r.integer("node", -1));
  launch.values = numbers(r.object("values"));
  return launch;
}

}  // namespace

std::string_view counter_set_name(CounterSet set) {
  return std::find_if(std::begin(kSets), std::end(kSets),
                      [&](const SetName& row) { return row.set == set; })
      ->name;
}

std::optional<CounterSet> counter_set_from_name(std::string_view name) {
  for (const SetName& row : kSets) {
    if (row.name == name) return row.set;
  }
  return std::nullopt;
}

std::vector<std::string> counters_of(CounterSet set) {
  std::vector<std::string> names;
  if (set == CounterSet::kTriage) names.assign(std::begin(kTriage), std::end(kTriage));
  if (set == CounterSet::kFull) {
    for (const Metric& metric : metrics_of(Family::kCounters)) {
      const auto* end = std::end(kNotCollected);
      if (std::find(std::begin(kNotCollected), end, metric.name) == end) {
        names.emplace_back(metric.name);
      }
    }
  }
  return names;
}

std::string counter_on(std::string_view metric, std::string_view chip) {
  for (const Alias& alias : kAliases) {
    if (alias.metric == metric && chip.starts_with(alias.chip)) return std::string(alias.name);
  }
  return std::string(metric);
}

std::string counter_from(std::string_view name) {
  for (const Alias& alias : kAliases) {
    if (alias.name == name) return std::string(alias.metric);
  }
  return std::string(name);
}

std::string counter_answers_to_json(const CounterAnswers& answers) {
  Json launches = Json::array();
  for (const LaunchCounters& launch : answers.launches) {
    launches.push_back(
        {{"function", launch.function}, {"node", launch.node}, {"values", launch.values}});
  }
  return dump_json({{"source", answers.source},
                    {"chip", answers.chip},
                    {"set", counter_set_name(answers.set)},
                    {"passes", answers.passes},
                    {"phases_ms", answers.phases_ms},
                    {"launches", std::move(launches)},
                    {"left_out", answers.left_out},
                    {"report", answers.report},
                    {"missing", missing_to_json(answers.missing)}});
}

std::optional<CounterAnswers> counter_answers_from_json(const std::string& text) {
  const std::optional<Json> json = parse_json(text);
  if (!json || !json->is_object()) return std::nullopt;
  const JsonReader r(*json);
  CounterAnswers answers;
  answers.source = r.text("source");
  answers.chip = r.text("chip");
  answers.set = counter_set_from_name(r.text("set")).value_or(CounterSet::kOff);
  answers.passes = static_cast<int>(r.integer("passes"));
  answers.phases_ms = numbers(r.object("phases_ms"));
  answers.report = r.text("report");
  answers.left_out = static_cast<int>(r.integer("left_out"));
  for (const Json& item : r.array("launches")) {
    std::optional<LaunchCounters> launch = launch_from(item);
    if (!launch) return std::nullopt;
    answers.launches.push_back(std::move(*launch));
  }
  for (const Json& item : r.array("missing")) {
    if (!item.is_object()) return std::nullopt;
    for (Missing& each : missing_from_json(item)) answers.missing.push_back(std::move(each));
  }
  return answers;
}

}  // namespace kernelpro
