// SPDX-License-Identifier: Apache-2.0
#include "core/evaluation/baseline.h"

#include <optional>

#include "base/json.h"

namespace kernelpro {

std::string baselines_to_json(const std::vector<Baseline>& baselines) {
  Json all = Json::array();
  for (const Baseline& b : baselines) {
    all.push_back({{"name", b.name},
                   {"error", b.error},
                   {"case", b.timing.case_name},
                   {"method", b.timing.method},
                   {"median_us", b.timing.median_us},
                   {"low_us", b.timing.low_us},
                   {"high_us", b.timing.high_us},
                   {"samples", b.timing.samples}});
  }
  return dump_json({{"baselines", all}});
}

std::vector<Baseline> baselines_from_json(const std::string& json) {
  const std::optional<Json> root = parse_json(json);
  std::vector<Baseline> result;
  if (!root || !root->is_object()) return result;
  for (const Json& item : JsonReader(*root).array("baselines")) {
    if (!item.is_object()) return {};
    const JsonReader r(item);
    Baseline b;
    b.name = r.text("name");
    b.error = r.text("error");
    b.timing = {r.text("case"),
                r.real("median_us"),
                r.real("low_us"),
                r.real("high_us"),
                static_cast<int>(r.integer("samples")),
                r.text("method")};
    result.push_back(std::move(b));
  }
  return result;
}

}  // namespace kernelpro
