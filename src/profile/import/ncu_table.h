// SPDX-License-Identifier: Apache-2.0
// Parses ncu's CSV, in any page layout, into launches with metrics. Does not interpret them.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace kernelpro {

struct NcuLaunch {
  std::string kernel;       // as printed
  std::string device;       // column "Device": a name or a number
  std::string capability;   // column "CC": "9.0"
  std::string block, grid;  // "(256, 1, 1)"
  struct Value {
    std::string text;
    std::string unit;
  };
  std::map<std::string, Value> metrics;  // by ncu's name, without its qualifier
};

struct NcuTable {
  std::vector<NcuLaunch> launches;
  std::vector<std::string> programs;  // column "Process Name": names without folders
  int broken_rows = 0;                // too few fields: a truncated file
  bool display_names = false;         // "Duration" instead of gpu__time_duration.sum
  std::vector<std::string> said;      // ncu's own ==ERROR== and ==WARNING== lines, without the mark
};

// Total: any text gives a table. `wanted` filters by metric name: a report has hundreds of metrics
// for each of thousands of launches.
NcuTable read_ncu_table(std::string_view text,
                        const std::function<bool(const std::string& name)>& wanted);

// The metric ("gpu__time_duration.sum") for a display name in a section of the details page; "" =
// not one of ours.
std::string_view metric_of_display_name(std::string_view section, std::string_view name);

}  // namespace kernelpro
