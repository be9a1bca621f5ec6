// SPDX-License-Identifier: Apache-2.0
#include "run/store/settings.h"

#include "base/json.h"

namespace kernelpro {

using json = Json;

namespace {

json roles_json(const RoleSettings& r) {
  return {{"planner", r.planner},
          {"coder", r.coder},
          {"fixer", r.fixer},
          {"one_call", r.one_call},
          {"ideas", r.ideas},
          {"fixes", r.fixes},
          {"tune", r.tune},
          {"tool_rounds", r.tool_rounds},
          {"max_tokens", r.max_tokens},
          {"max_usd", r.max_usd},
          {"max_calls", r.max_calls}};
}

RoleSettings roles_from_json(const json& j) {
  RoleSettings r;
  r.planner = j.value("planner", r.planner);
  r.coder = j.value("coder", r.coder);
  r.fixer = j.value("fixer", r.fixer);
  r.one_call = j.value("one_call", r.one_call);
  r.ideas = j.value("ideas", r.ideas);
  r.fixes = j.value("fixes", r.fixes);
  r.tune = j.value("tune", r.tune);
  r.tool_rounds = j.value("tool_rounds", r.tool_rounds);
  r.max_tokens = j.value("max_tokens", r.max_tokens);
  r.max_usd = j.value("max_usd", r.max_usd);
  r.max_calls = j.value("max_calls", r.max_calls);
  return r;
}

}  // namespace

std::string settings_to_json(const RunSettings& s) {
  // Without what concerns one process alone: jobs, standby workers ...
  const json station = *parse_json(station_settings_to_json(s));
  const json j = {{"target", station["target"]},
                  {"proposer", s.proposer},
                  {"replay_from", s.replay_from},
                  {"seed", s.seed},
                  {"search", s.search},
                  {"preset", s.preset},
                  {"max_evaluations", s.max_evaluations},
                  {"max_seconds", s.max_seconds},
                  {"near_ceiling", s.near_ceiling},
                  {"plateau", s.plateau},
                  {"least_gain", s.least_gain},
                  {"timeout_s", station["timeout_s"]},
                  {"exchange_wait_s", s.exchange_wait_s},
                  {"objective", station["objective"]},
                  {"policy", station["policy"]},
                  {"probes", station["probes"]},
                  {"gpu", station["gpu"]},
                  {"gpus", station["gpus"]},
                  {"stations", station["stations"]},
                  {"include_dirs", station["include_dirs"]},
                  {"counters", station["counters"]},
                  {"profile_each", station["profile_each"]},
                  {"record", s.record},
                  {"facts", s.facts},
                  {"memory", s.memory},
                  {"roles", roles_json(s.roles)},
                  {"feedback", feedback_name(s.feedback)},
                  {"prompts", s.prompts},
                  {"language", s.dialect ? dialect_row(*s.dialect).name : ""},
                  {"start_from", s.start_from}};
  return dump_json(j);
}

std::optional<RunSettings> settings_from_json(const std::string& text) {
  const std::optional<json> parsed = parse_json(text);
  const json j = parsed.value_or(json());
  const auto station = station_settings_from_json(text);
  if (!j.is_object() || !station) return std::nullopt;
  try {
    RunSettings s;
    static_cast<StationSettings&>(s) = *station;
    s.proposer = j.value("proposer", s.proposer);
    s.replay_from = j.value("replay_from", s.replay_from);
    s.seed = j.value("seed", s.seed);
    s.search = j.value("search", s.search);
    s.preset = j.value("preset", s.preset);
    s.max_evaluations = j.value("max_evaluations", s.max_evaluations);
    s.max_seconds = j.value("max_seconds", s.max_seconds);
    s.near_ceiling = j.value("near_ceiling", s.near_ceiling);
    s.plateau = j.value("plateau", s.plateau);
    s.least_gain = j.value("least_gain", s.least_gain);
    s.exchange_wait_s = j.value("exchange_wait_s", s.exchange_wait_s);
    s.record = j.value("record", s.record);
    s.facts = j.value("facts", s.facts);
    s.memory = j.value("memory", s.memory);
    s.roles = roles_from_json(JsonReader(j).object("roles"));
    s.feedback = feedback_from_name(j.value("feedback", "")).value_or(s.feedback);
    s.prompts = j.value("prompts", s.prompts);
    s.dialect = dialect_from_name(j.value("language", ""));
    s.start_from = j.value("start_from", s.start_from);
    return s;
  } catch (const json::exception&) {
    return std::nullopt;
  }
}

}  // namespace kernelpro
