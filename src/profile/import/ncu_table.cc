// SPDX-License-Identifier: Apache-2.0
#include "profile/import/ncu_table.h"

#include <algorithm>
#include <optional>

#include "base/text.h"
#include "core/evidence/counters.h"
#include "profile/import/csv.h"

namespace kernelpro {

namespace {

// Columns by name; -1 = absent.
struct Header {
  std::vector<std::string> names;
  int id = -1, process = -1, program = -1, kernel = -1, block = -1, grid = -1, device = -1,
      capability = -1;
  int section = -1, metric = -1, unit = -1, value = -1;
  std::vector<std::pair<int, std::string>> wide;  // wanted metric columns of the raw page
  int metric_columns = 0, last_column = 0;
  bool quoted = false;

  bool is_long() const { return metric >= 0 && value >= 0; }
};

// "LTS.TriageCompute.lts__t_sectors.sum" -> "lts__t_sectors.sum"; other chips' names -> ours.
std::string plain_name(const std::string& name) {
  const std::size_t mark = name.find("__");
  if (mark == std::string::npos) return name;
  const std::size_t dot = name.rfind('.', mark);
  return counter_from(dot == std::string::npos ? name : name.substr(dot + 1));
}

bool is_metric_name(const std::string& name) {
  return contains(name, "__") || name == "inst_executed" || name == "thread_inst_executed" ||
         name == "thread_inst_executed_true";
}

using Wanted = std::function<bool(const std::string& name)>;

std::optional<Header> read_header(const std::vector<std::string>& fields, bool quoted,
                                  const Wanted& wanted) {
  Header h;
  h.quoted = quoted;
  h.names = fields;
  const std::pair<const char*, int*> known[] = {{"ID", &h.id},
                                                {"Process ID", &h.process},
                                                {"Process Name", &h.program},
                                                {"Kernel Name", &h.kernel},
                                                {"Block Size", &h.block},
                                                {"Grid Size", &h.grid},
                                                {"Device", &h.device},
                                                {"CC", &h.capability},
                                                {"Section Name", &h.section},
                                                {"Metric Name", &h.metric},
                                                {"Metric Unit", &h.unit},
                                                {"Metric Value", &h.value}};
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const std::string name(trim(fields[i]));
    bool meta = false;
    for (const auto& [column, index] : known) {
      if (name != column) continue;
      meta = true;
      if (*index < 0) *index = static_cast<int>(i);
    }
    if (meta || !is_metric_name(name)) continue;
    ++h.metric_columns;
    h.last_column = static_cast<int>(i);
    const std::string metric = plain_name(name);
    if (wanted(metric)) h.wide.emplace_back(static_cast<int>(i), metric);
  }
  if (h.kernel < 0 || (!h.is_long() && h.metric_columns == 0)) return std::nullopt;
  return h;
}

std::string field(const std::vector<std::string>& fields, int column) {
  if (column < 0 || static_cast<std::size_t>(column) >= fields.size()) return "";
  return std::string(trim(fields[static_cast<std::size_t>(column)]));
}

struct Reader {
  const Wanted& wanted;
  NcuTable table = {};
  std::optional<Header> header = {};
  std::map<std::string, std::size_t> by_id = {};  // long layout: process and ID to launch
  std::map<int, std::string> units = {};          // wide layout, by column

  void take(const std::vector<std::string>& fields);
  void take_long(const std::vector<std::string>& fields);
  void take_wide(const std::vector<std::string>& fields);
  NcuLaunch begin(const std::vector<std::string>& fields);
};

NcuLaunch Reader::begin(const std::vector<std::string>& fields) {
  constexpr std::size_t kMostPrograms = 4;
  const std::string program = field(fields, header->program);
  auto& known = table.programs;
  if (!program.empty() && known.size() < kMostPrograms &&
      std::find(known.begin(), known.end(), program) == known.end()) {
    known.push_back(program);
  }
  NcuLaunch launch;
  launch.kernel = field(fields, header->kernel);
  launch.device = field(fields, header->device);
  launch.capability = field(fields, header->capability);
  launch.block = field(fields, header->block);
  launch.grid = field(fields, header->grid);
  return launch;
}

void Reader::take_long(const std::vector<std::string>& fields) {
  const std::string name = field(fields, header->metric);
  if (static_cast<std::size_t>(header->value) >= fields.size()) {
    ++table.broken_rows;
    return;
  }
  const std::string kernel = field(fields, header->kernel);
  if (kernel.empty()) return;
  const std::string key =
      field(fields, header->process) + "/" + field(fields, header->id) + "/" + kernel;
  const auto [it, fresh] = by_id.emplace(key, table.launches.size());
  if (fresh) table.launches.push_back(begin(fields));
  if (name.empty()) return;  // a rule's row
  std::string metric = plain_name(name);
  if (!is_metric_name(metric)) {
    metric = metric_of_display_name(field(fields, header->section), name);
    table.display_names = true;
  }
  if (metric.empty() || !wanted(metric)) return;
  // A metric may appear in several sections with the same value.
  table.launches[it->second].metrics.try_emplace(
      metric, NcuLaunch::Value{field(fields, header->value), field(fields, header->unit)});
}

void Reader::take_wide(const std::vector<std::string>& fields) {
  const std::string kernel = field(fields, header->kernel);
  if (kernel.empty() && field(fields, header->id).empty()) {
    units.clear();
    for (const auto& [column, name] : header->wide) units[column] = field(fields, column);
    return;
  }
  if (kernel.empty()) return;
  if (static_cast<std::size_t>(header->last_column) >= fields.size()) ++table.broken_rows;
  NcuLaunch launch = begin(fields);
  for (const auto& [column, name] : header->wide) {
    if (static_cast<std::size_t>(column) >= fields.size()) break;
    const auto unit = units.find(column);
    launch.metrics.try_emplace(
        name, NcuLaunch::Value{field(fields, column), unit == units.end() ? "" : unit->second});
  }
  table.launches.push_back(std::move(launch));
}

void Reader::take(const std::vector<std::string>& fields) {
  header->is_long() ? take_long(fields) : take_wide(fields);
}

// "==ERROR== text", or "==123== WARNING: text" in old versions.
void take_remark(std::string_view line, NcuTable* table) {
  constexpr std::size_t kMost = 20;
  for (const std::string_view mark : {"==ERROR==", "==WARNING=="}) {
    if (line.substr(0, mark.size()) != mark || table->said.size() >= kMost) continue;
    table->said.emplace_back(printable(trim(line.substr(mark.size())).substr(0, 300)));
  }
}

bool is_blank(std::string_view line) { return trim(line).empty(); }

std::string_view raw_line(std::string_view text) { return text.substr(0, text.find('\n')); }

void skip_line(std::string_view* text) {
  const std::size_t end = text->find('\n');
  text->remove_prefix(end == std::string_view::npos ? text->size() : end + 1);
}

// Whether this line can be a table record rather than program output.
bool may_be_record(std::string_view line, const std::optional<Header>& header) {
  if (!header) return contains(line, "Kernel Name");
  return header->quoted ? line[0] == '"' : contains(line, ",");
}

}  // namespace

NcuTable read_ncu_table(std::string_view text, const Wanted& wanted) {
  if (text.substr(0, 3) == "\xef\xbb\xbf") text.remove_prefix(3);
  Reader reader{wanted};
  std::vector<std::string> fields;
  while (!text.empty()) {
    const std::string_view line = raw_line(text);
    if (line.substr(0, 2) == "==") take_remark(line, &reader.table);
    if (line.substr(0, 2) == "==" || is_blank(line) || !may_be_record(line, reader.header)) {
      skip_line(&text);
      continue;
    }
    const bool quoted = line[0] == '"';
    next_record(&text, &fields);
    if (contains(line, "Kernel Name")) {
      if (auto header = read_header(fields, quoted, wanted)) {
        // Another report after the first: it numbers its launches anew.
        reader.header = std::move(header);
        reader.by_id.clear();
        reader.units.clear();
        continue;
      }
    }
    if (reader.header) reader.take(fields);
  }
  return std::move(reader.table);
}

namespace {

struct DisplayName {
  std::string_view section;  // "" = any
  std::string_view name;
  std::string_view metric;
};

constexpr DisplayName kDisplayNames[] = {
    {"", "Duration", "gpu__time_duration.sum"},
    {"", "Elapsed Cycles", "gpc__cycles_elapsed.max"},
    {"", "SM Active Cycles", "sm__cycles_active.avg"},
    {"", "SM Frequency", "gpc__cycles_elapsed.avg.per_second"},
    {"GPU Speed Of Light Throughput", "DRAM Throughput",
     "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed"},
    {"", "Issued Ipc Active", "sm__inst_issued.avg.per_cycle_active"},
    {"", "Issue Slots Busy", "smsp__issue_active.avg.pct_of_peak_sustained_active"},
    {"", "One or More Eligible", "smsp__issue_active.avg.pct_of_peak_sustained_active"},
    {"", "Achieved Active Warps Per SM", "sm__warps_active.avg.per_cycle_active"},
    {"", "Executed Instructions", "smsp__inst_executed.sum"},
    {"", "Issued Warp Per Scheduler", "smsp__issue_active.avg.per_cycle_active"},
    {"", "Active Warps Per Scheduler", "smsp__warps_active.avg.per_cycle_active"},
    {"", "Eligible Warps Per Scheduler", "smsp__warps_eligible.avg.per_cycle_active"},
    {"", "Warp Cycles Per Issued Instruction", "smsp__average_warp_latency_per_inst_issued.ratio"},
    {"", "Block Size", "launch__block_size"},
    {"", "Grid Size", "launch__grid_size"},
    {"", "Cluster Size", "launch__cluster_size"},
    {"", "Registers Per Thread", "launch__registers_per_thread"},
    {"", "Static Shared Memory Per Block", "launch__shared_mem_per_block_static"},
    {"", "Dynamic Shared Memory Per Block", "launch__shared_mem_per_block_dynamic"},
    {"", "Waves Per SM", "launch__waves_per_multiprocessor"},
    {"", "Block Limit SM", "launch__occupancy_limit_blocks"},
    {"", "Block Limit Registers", "launch__occupancy_limit_registers"},
    {"", "Block Limit Shared Mem", "launch__occupancy_limit_shared_mem"},
    {"", "Block Limit Warps", "launch__occupancy_limit_warps"},
    {"", "Block Limit Barriers", "launch__occupancy_limit_barriers"},
    {"", "Theoretical Occupancy", "sm__maximum_warps_per_active_cycle_pct"},
    {"", "# SMs", "launch__sm_count"},
};

}  // namespace

std::string_view metric_of_display_name(std::string_view section, std::string_view name) {
  for (const DisplayName& row : kDisplayNames) {
    if (row.name == name && (row.section.empty() || row.section == section)) return row.metric;
  }
  return {};
}

}  // namespace kernelpro
