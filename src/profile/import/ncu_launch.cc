// SPDX-License-Identifier: Apache-2.0
#include "profile/import/ncu_launch.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "core/evidence/metrics.h"

namespace kernelpro {

namespace {

// One of our metrics under an older version's name or in another form, times `factor`.
struct Alias {
  std::string_view theirs;
  std::string_view ours;
  double factor = 1;
};
constexpr Alias kAliases[] = {
    {"gpu__time_duration.avg", "gpu__time_duration.sum"},
    {"gpu__time_duration.max", "gpu__time_duration.sum"},
    {"sm__cycles_elapsed.max", "gpc__cycles_elapsed.max"},
    {"sm__cycles_elapsed.avg.per_second", "gpc__cycles_elapsed.avg.per_second"},
    {"dram__sectors_read.sum", "dram__bytes_read.sum", 32},
    {"dram__sectors_write.sum", "dram__bytes_write.sum", 32},
    {"dram__throughput.avg.pct_of_peak_sustained_elapsed",
     "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed"},
    {"inst_executed", "smsp__inst_executed.sum"},
    {"sm__inst_executed.sum", "smsp__inst_executed.sum"},
    {"thread_inst_executed", "smsp__thread_inst_executed.sum"},
    {"thread_inst_executed_true", "smsp__thread_inst_executed_pred_on.sum"},
    {"smsp__issue_active.avg.pct_of_peak_sustained_active",
     "smsp__issue_active.avg.per_cycle_active", 0.01},
    {"smsp__inst_issued.avg.per_cycle_active", "smsp__issue_active.avg.per_cycle_active"},
    {"sm__inst_issued.avg.per_cycle_active", "smsp__issue_active.avg.per_cycle_active", 0.25},
    {"sm__warps_active.avg.per_cycle_active", "smsp__warps_active.avg.per_cycle_active", 0.25},
};

constexpr std::string_view kElapsed = ".pct_of_peak_sustained_elapsed";
constexpr std::string_view kActive = ".pct_of_peak_sustained_active";

bool ends_with(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

// "x.pct_of_peak_sustained_active" for "x.pct_of_peak_sustained_elapsed"; "" for other names.
std::string active_name(std::string_view name) {
  if (!ends_with(name, kElapsed)) return "";
  return std::string(name.substr(0, name.size() - kElapsed.size())) + std::string(kActive);
}

// "smsp__average_warp_latency_issue_stalled_X.ratio", some versions' name for cycles per reason.
std::string stall_latency_name(std::string_view name) {
  constexpr std::string_view head = "smsp__average_warps_issue_stalled_";
  constexpr std::string_view tail = "_per_issue_active.ratio";
  if (name.substr(0, head.size()) != head || !ends_with(name, tail)) return "";
  return "smsp__average_warp_latency_issue_stalled_" +
         std::string(name.substr(head.size(), name.size() - head.size() - tail.size())) + ".ratio";
}

constexpr std::string_view kDeviceNames[] = {
    "device__attribute_display_name",
    "device__attribute_compute_capability_major",
    "device__attribute_compute_capability_minor",
    "device__attribute_multiprocessor_count",
    "device__attribute_max_mem_frequency_khz",
    "device__attribute_memory_clock_rate",
    "device__attribute_global_memory_bus_width",
    "device__attribute_max_gpu_frequency_khz",
    "device__attribute_clock_rate",
    "device__attribute_l2_cache_size",
    "launch__sm_count",
};

// Registered metrics that ncu also has.
const std::vector<const Metric*>& ours() {
  static const std::vector<const Metric*> rows = [] {
    std::vector<const Metric*> all;
    for (const Metric& metric : metrics()) {
      if (contains(metric.name, "__")) all.push_back(&metric);
    }
    return all;
  }();
  return rows;
}

}  // namespace

bool is_wanted_of_ncu(const std::string& name) {
  static const std::set<std::string, std::less<>> names = [] {
    std::set<std::string, std::less<>> all;
    for (const Metric* metric : ours()) {
      all.emplace(metric->name);
      all.insert(active_name(metric->name));
      all.insert(stall_latency_name(metric->name));
    }
    for (const Alias& alias : kAliases) all.emplace(alias.theirs);
    for (const std::string_view name_of_device : kDeviceNames) all.emplace(name_of_device);
    return all;
  }();
  return names.find(name) != names.end();
}

std::optional<double> NcuConverter::number(const NcuLaunch& launch, std::string_view name) const {
  const auto found = launch.metrics.find(std::string(name));
  if (found == launch.metrics.end()) return std::nullopt;
  return read_number(found->second.text, sign_);
}

std::optional<double> NcuConverter::in_unit(const NcuLaunch& launch, std::string_view theirs,
                                            std::string_view unit) {
  const auto found = launch.metrics.find(std::string(theirs));
  if (found == launch.metrics.end()) return std::nullopt;
  const auto value = read_number(found->second.text, sign_);
  if (!value) {
    without_number_.insert(found->first);
    return std::nullopt;
  }
  // A sector count stands in for a byte metric.
  const bool sectors = contains(theirs, "sectors") && unit == "byte";
  const auto factor =
      sectors ? convert_unit(found->second.unit, "1") : convert_unit(found->second.unit, unit);
  if (!factor || !std::isfinite(*value * *factor)) {
    odd_units_.insert(found->first + " (" + printable(found->second.unit) + ")");
    return std::nullopt;
  }
  return *value * *factor;
}

NcuLaunchValues NcuConverter::convert(const NcuLaunch& from) {
  NcuLaunchValues launch;
  launch.table = &from;
  for (const Metric* metric : ours()) {
    const std::string name(metric->name);
    auto value = in_unit(from, name, metric->unit);
    if (!value) value = in_unit(from, stall_latency_name(name), metric->unit);
    if (value) launch.values[name] = *value;
  }
  for (const Alias& alias : kAliases) {
    const std::string name(alias.ours);
    const Metric* metric = find_metric(name);
    if (metric == nullptr || launch.values.contains(name)) continue;
    // A share of a peak is in percent, whatever the unit of the metric it replaces.
    const std::string_view unit = contains(alias.theirs, ".pct") ? "%" : metric->unit;
    if (const auto value = in_unit(from, alias.theirs, unit)) {
      launch.values[name] = alias.factor * *value;
    }
  }
  const auto get = [&](const char* name) {
    const auto found = launch.values.find(name);
    return found == launch.values.end() ? 0.0 : found->second;
  };
  // Scale a share of active cycles by the active fraction to get a share of elapsed cycles.
  const double active = get("sm__cycles_active.avg"), elapsed = get("gpc__cycles_elapsed.max");
  for (const Metric* metric : ours()) {
    const std::string theirs = active_name(metric->name);
    if (theirs.empty() || launch.values.contains(std::string(metric->name))) continue;
    if (!(active > 0) || !(elapsed > 0)) continue;
    if (const auto value = in_unit(from, theirs, metric->unit)) {
      launch.values[std::string(metric->name)] = *value * std::min(1.0, active / elapsed);
    }
  }
  launch.time_ns = std::max(0.0, get("gpu__time_duration.sum"));
  return launch;
}

DeviceFacts device_of_ncu(const NcuTable& table, const NcuConverter& converter) {
  DeviceFacts facts;
  const NcuLaunch& launch = table.launches.front();
  const auto text = launch.metrics.find("device__attribute_display_name");
  if (text != launch.metrics.end()) facts.name = printable(text->second.text);
  const bool named = std::any_of(launch.device.begin(), launch.device.end(),
                                 [](char c) { return (c | 0x20) >= 'a' && (c | 0x20) <= 'z'; });
  if (facts.name.empty() && named) facts.name = printable(launch.device);
  const auto number = [&](const char* name) {
    return std::max(0.0, converter.number(launch, name).value_or(0));
  };
  const std::vector<std::string> version = split(launch.capability, '.');
  const auto small = [](double value) { return value < 100 ? static_cast<int>(value) : 0; };
  facts.major = small(number("device__attribute_compute_capability_major"));
  facts.minor = small(number("device__attribute_compute_capability_minor"));
  if (facts.major == 0 && version.size() == 2) {
    facts.major = small(read_number(version[0], DecimalSign::kPoint).value_or(0));
    facts.minor = small(read_number(version[1], DecimalSign::kPoint).value_or(0));
  }
  facts.multiprocessors = number("device__attribute_multiprocessor_count");
  if (facts.multiprocessors == 0) facts.multiprocessors = number("launch__sm_count");
  if (!(facts.multiprocessors < 1e6)) facts.multiprocessors = 0;
  double memory_khz = number("device__attribute_max_mem_frequency_khz");
  if (memory_khz == 0) memory_khz = number("device__attribute_memory_clock_rate");
  // Double data rate: both clock edges carry data.
  facts.bytes_per_s =
      2 * 1e3 * memory_khz * number("device__attribute_global_memory_bus_width") / 8;
  double clock_khz = number("device__attribute_max_gpu_frequency_khz");
  if (clock_khz == 0) clock_khz = number("device__attribute_clock_rate");
  facts.clock_hz = 1e3 * clock_khz;
  facts.l2_bytes = number("device__attribute_l2_cache_size");
  return facts;
}

double implied_bandwidth(const std::vector<NcuLaunchValues>& launches) {
  double best_percent = 0, result = 0;
  for (const NcuLaunchValues& launch : launches) {
    const auto get = [&](const char* name) {
      const auto found = launch.values.find(name);
      return found == launch.values.end() ? 0.0 : found->second;
    };
    const double bytes = get("dram__bytes_read.sum") + get("dram__bytes_write.sum");
    const double percent = get("gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed");
    if (!(launch.time_ns > 0) || !(bytes > 0) || !(percent > std::max(10.0, best_percent)))
      continue;
    best_percent = percent;
    result = bytes / (1e-9 * launch.time_ns) / (percent / 100);
  }
  return std::isfinite(result) ? result : 0;
}

}  // namespace kernelpro
