// SPDX-License-Identifier: Apache-2.0
#include "core/evidence/missing_json.h"

#include <algorithm>

#include "base/text.h"
#include "core/evidence/metrics.h"

namespace kernelpro {

namespace {

// Words for what is missing in evidence that was stored before families had names. Names of
// metrics stood there too.
struct OldWords {
  std::string_view what;  // alone, or before a part: "counters of 496 launches"
  Family family;
  std::string_view metric = {};
  std::string_view part = {};
};
constexpr OldWords kOldWords[] = {
    {"copy bandwidth", Family::kCeilings, "ceiling.copy_bandwidth"},
    {"fp32 multiply-add rate", Family::kCeilings, "ceiling.fma_rate"},
    {"timing", Family::kTiming},
    {"instruction mix", Family::kHostCode},
    {"SASS instruction mix", Family::kSass},
    {"registers and spills", Family::kResources},
    {"hardware counters", Family::kCounters},
    {"counters", Family::kCounters},
    {"a report of ncu", Family::kCounters},
    {"trace", Family::kTrace},
    {"the trace's end", Family::kTrace, "", "of its end"},
    // A module's kernels, which PyTorch launches.
    {"kernels", Family::kPlan},
    {"kernels", Family::kLaunch},
    {"kernels", Family::kResources},
    {"kernels", Family::kSass},
    {"kernels", Family::kCounters},
};

}  // namespace

Json missing_to_json(const std::vector<Missing>& missing) {
  Json list = Json::array();
  for (const Missing& each : missing) {
    Json item = {
        {"family", family_name(each.family)}, {"reason", each.reason}, {"next", each.next}};
    if (!each.metrics.empty()) item["metrics"] = each.metrics;
    if (!each.part.empty()) item["part"] = each.part;
    list.push_back(std::move(item));
  }
  return list;
}

std::vector<Missing> missing_from_words(const std::string& what, const std::string& reason,
                                        const std::string& next) {
  std::vector<Missing> result;
  for (const OldWords& row : kOldWords) {
    if (what == row.what) {
      Missing& missing = result.emplace_back(Missing{row.family, reason, next});
      if (!row.metric.empty()) missing.metrics.emplace_back(row.metric);
      missing.part = row.part;
    } else if (what.starts_with(std::string(row.what) + " ")) {
      result.push_back({row.family, reason, next, {}, what.substr(row.what.size() + 1)});
    }
  }
  for (const std::string& word : split(what, ',')) {
    const Metric* metric = find_metric(trim(word));
    if (metric == nullptr) continue;
    const auto same = std::find_if(result.begin(), result.end(), [&](const Missing& each) {
      return each.family == metric->family;
    });
    if (same == result.end()) {
      result.push_back({metric->family, reason, next, {std::string(metric->name)}});
    } else {
      same->metrics.emplace_back(metric->name);
    }
  }
  return result;
}

}  // namespace kernelpro
