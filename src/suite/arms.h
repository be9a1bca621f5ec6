// SPDX-License-Identifier: Apache-2.0
// Arms of an ablation: named sets of settings, under each of which every task is run. A setting
// that arms can vary is one row of arms.cc.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "run/run.h"

namespace kernelpro {

struct ArmRow {
  std::string_view name;
  std::string_view values;  // "none|raw|diagnosed"; "" any
  // Sets it; false: the value is none of its values.
  bool (*apply)(const std::string& value, RunSettings* settings);
};
std::span<const ArmRow> arm_rows();

struct Arm {
  std::string name = "base";  // "feedback=raw", "feedback=raw,seed=2"; its folder's as well
  std::map<std::string, std::string> values = {};  // by row; what is not here stays as it was given
};

// Of items such as "feedback=none,raw". Each value of each item is an arm; with `cross`, each
// combination of values, one of each item. No item: one arm, "base". Fails with kBadInput on an
// unknown row or value, a row that is named twice, and on `cross` with less than two items.
Result<std::vector<Arm>> parse_arms(const std::vector<std::string>& items, bool cross);

// `base` with the arm's values. REQUIRES: the arm came from parse_arms.
RunSettings settings_of(const Arm& arm, RunSettings base);

}  // namespace kernelpro
