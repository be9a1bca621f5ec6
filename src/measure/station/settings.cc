// SPDX-License-Identifier: Apache-2.0
#include "measure/station/settings.h"

#include "base/json.h"

namespace kernelpro {

std::string station_settings_to_json(const StationSettings& s) {
  return dump_json({{"target", target_name(s.target)},
                    {"timeout_s", s.timeout_s},
                    {"objective", objective_text(s.objective)},
                    {"policy", policy_name(s.policy)},
                    {"probes", s.probes},
                    {"probes_each", s.probes_each},
                    {"redraw", s.redraw},
                    {"timing", s.timing},
                    {"gpu", s.gpu},
                    {"gpus", s.gpus},
                    {"stations", s.stations},
                    {"python", s.python},
                    {"candidates", s.candidates},
                    {"include_dirs", s.include_dirs},
                    {"counters", counter_set_name(s.counters)},
                    {"profile_each", s.profile_each},
                    {"jobs", s.jobs},
                    {"modules_ahead", s.modules_ahead},
                    {"evaluations", s.evaluations},
                    {"standby", s.standby}});
}

std::optional<StationSettings> station_settings_from_json(const std::string& text) {
  const Json json = parse_json(text).value_or(Json());
  if (!json.is_object()) return std::nullopt;
  try {
    StationSettings s;
    const auto target = target_from_name(json.value("target", "cpu"));
    const auto policy = policy_from_name(json.value("policy", "contract"));
    const auto objective = objective_from_text(json.value("objective", "time"));
    if (!target || !policy || !objective) return std::nullopt;
    s.target = *target;
    s.policy = *policy;
    s.objective = *objective;
    s.timeout_s = json.value("timeout_s", s.timeout_s);
    s.probes = json.value("probes", s.probes);
    s.probes_each = json.value("probes_each", s.probes_each);
    s.redraw = json.value("redraw", s.redraw);
    s.timing = json.value("timing", s.timing);
    s.gpu = json.value("gpu", s.gpu);
    s.gpus = json.value("gpus", s.gpus);
    s.stations = json.value("stations", s.stations);
    s.python = json.value("python", s.python);
    s.candidates = json.value("candidates", s.candidates);
    s.include_dirs = json.value("include_dirs", s.include_dirs);
    s.counters = counter_set_from_name(json.value("counters", "off")).value_or(CounterSet::kOff);
    s.profile_each = json.value("profile_each", s.profile_each);
    s.jobs = json.value("jobs", s.jobs);
    s.modules_ahead = json.value("modules_ahead", s.modules_ahead);
    s.evaluations = json.value("evaluations", s.evaluations);
    s.standby = json.value("standby", s.standby);
    return s;
  } catch (const Json::exception&) {
    return std::nullopt;
  }
}

}  // namespace kernelpro
