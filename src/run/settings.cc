// SPDX-License-Identifier: Apache-2.0
#include "run/settings.h"

#include "core/json.h"

namespace kernelpro {

using json = Json;

std::string settings_to_json(const RunSettings& s) {
  const json j = {{"target", target_name(s.target)},
                  {"proposer", s.proposer},
                  {"replay_from", s.replay_from},
                  {"seed", s.seed},
                  {"max_evaluations", s.max_evaluations},
                  {"max_seconds", s.max_seconds},
                  {"near_ceiling", s.near_ceiling},
                  {"plateau", s.plateau},
                  {"timeout_s", s.timeout_s},
                  {"exchange_wait_s", s.exchange_wait_s},
                  {"policy", policy_name(s.policy)},
                  {"probes", s.probes},
                  {"gpu", s.gpu},
                  {"counters", counter_set_name(s.counters)},
                  {"record", s.record}};
  return dump_json(j);
}

std::optional<RunSettings> settings_from_json(const std::string& text) {
  const std::optional<json> parsed = parse_json(text);
  const json j = parsed.value_or(json());
  if (!j.is_object()) return std::nullopt;
  try {
    RunSettings s;
    const auto target = target_from_name(j.value("target", "cpu"));
    if (!target) return std::nullopt;
    s.target = *target;
    s.proposer = j.value("proposer", s.proposer);
    s.replay_from = j.value("replay_from", s.replay_from);
    s.seed = j.value("seed", s.seed);
    s.max_evaluations = j.value("max_evaluations", s.max_evaluations);
    s.max_seconds = j.value("max_seconds", s.max_seconds);
    s.near_ceiling = j.value("near_ceiling", s.near_ceiling);
    s.plateau = j.value("plateau", s.plateau);
    s.timeout_s = j.value("timeout_s", s.timeout_s);
    s.exchange_wait_s = j.value("exchange_wait_s", s.exchange_wait_s);
    const auto policy = policy_from_name(j.value("policy", "contract"));
    if (!policy) return std::nullopt;
    s.policy = *policy;
    s.probes = j.value("probes", s.probes);
    s.gpu = j.value("gpu", s.gpu);
    s.counters = counter_set_from_name(j.value("counters", "off")).value_or(CounterSet::kOff);
    s.record = j.value("record", s.record);
    return s;
  } catch (const json::exception&) {
    return std::nullopt;
  }
}

}  // namespace kernelpro
