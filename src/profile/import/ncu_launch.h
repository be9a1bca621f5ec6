// SPDX-License-Identifier: Apache-2.0
// Converts a launch of ncu's table to the registry's names and units, whatever version, chip and
// locale printed it; also reads the GPU's facts.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "profile/import/csv.h"
#include "profile/import/device.h"
#include "profile/import/ncu_table.h"

namespace kernelpro {

// Whether we use ncu's metric of this name.
bool is_wanted_of_ncu(const std::string& name);

// One launch in numbers: registered names in registered units.
struct NcuLaunchValues {
  const NcuLaunch* table = nullptr;
  std::map<std::string, double> values;
  double time_ns = 0;  // 0 = unknown
};

// Converts values and records which ones had to be dropped.
class NcuConverter {
 public:
  explicit NcuConverter(DecimalSign sign) : sign_(sign) {}

  NcuLaunchValues convert(const NcuLaunch& launch);
  std::optional<double> number(const NcuLaunch& launch, std::string_view name) const;
  const std::set<std::string>& odd_units() const { return odd_units_; }
  const std::set<std::string>& without_number() const { return without_number_; }

 private:
  std::optional<double> in_unit(const NcuLaunch& launch, std::string_view theirs,
                                std::string_view unit);

  DecimalSign sign_;
  std::set<std::string> odd_units_;       // "name (unit)"
  std::set<std::string> without_number_;  // names
};

// The GPU's facts from the first launch. REQUIRES: the table has a launch.
DeviceFacts device_of_ncu(const NcuTable& table, const NcuConverter& converter);
// The memory peak behind ncu's own percentages, bytes per second; 0 = cannot be derived.
double implied_bandwidth(const std::vector<NcuLaunchValues>& launches);

}  // namespace kernelpro
