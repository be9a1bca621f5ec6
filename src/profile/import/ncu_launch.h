// SPDX-License-Identifier: Apache-2.0
// A launch of ncu's table in our terms: the registry's names and units, whatever version, chip and
// locale printed it; and the GPU behind it.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/metrics.h"
#include "profile/import/csv.h"
#include "profile/import/device.h"
#include "profile/import/ncu_table.h"

namespace kernelpro {

// Whether anything is made of ncu's metric of this name.
bool is_wanted_of_ncu(const std::string& name);

// One launch in numbers: registered names in registered units.
struct NcuLaunchValues {
  const NcuLaunch* table = nullptr;
  std::map<std::string, double> values;
  double time_ns = 0;  // 0 = not known
};

// What the values come to, and what had to be left out of them.
class NcuConverter {
 public:
  explicit NcuConverter(DecimalSign sign) : sign_(sign) {}

  NcuLaunchValues convert(const NcuLaunch& launch);
  std::optional<double> number(const NcuLaunch& launch, std::string_view name) const;
  const std::set<std::string>& odd_units() const { return odd_units_; }
  const std::set<std::string>& without_number() const { return without_number_; }

 private:
  std::optional<double> in_unit(const NcuLaunch& launch, std::string_view theirs,
                                const Metric& metric);

  DecimalSign sign_;
  std::set<std::string> odd_units_;       // "name (unit)"
  std::set<std::string> without_number_;  // names
};

// What the first launch tells about the GPU. REQUIRES: the table has a launch.
DeviceFacts device_of_ncu(const NcuTable& table, const NcuConverter& converter);
// The peak of the memory that ncu's own percentages are of, bytes per second; 0 = not to be told.
double implied_bandwidth(const std::vector<NcuLaunchValues>& launches);

}  // namespace kernelpro
