// SPDX-License-Identifier: Apache-2.0
#include "measure/station/order.h"

#include "base/json.h"

namespace kernelpro {

namespace {

// A value that has JSON of its own, as a member of ours.
Json member(const std::string& json) { return parse_json(json).value_or(Json()); }

// Reads an optional member. False: it is there and damaged.
template <class Value, class Read>
bool read_member(const JsonReader& r, const char* name, Read read, std::optional<Value>* value) {
  const Json* json = r.member(name);
  if (json == nullptr) return true;
  *value = read(dump_json(*json));
  return value->has_value();
}

}  // namespace

std::string order_to_json(const Order& order) {
  Json json = {{"candidate", member(candidate_to_json(order.candidate))},
               {"confirm", order.confirm},
               {"variant", order.variant},
               {"observe", order.observe},
               {"inspect", order.inspect}};
  if (order.incumbent) json["incumbent"] = member(candidate_to_json(*order.incumbent));
  if (order.energy) {
    json["energy"] = {{"windows", order.energy->windows}, {"window_s", order.energy->window_s}};
  }
  if (order.counters_above) json["counters_above"] = *order.counters_above;
  if (order.judged) json["judged"] = member(evaluation_to_json(*order.judged));
  return dump_json(json);
}

std::optional<Order> order_from_json(const std::string& json) {
  const std::optional<Json> root = parse_json(json);
  if (!root) return std::nullopt;
  const JsonReader r(*root);
  Order order;
  std::optional<Candidate> candidate;
  const bool whole = read_member(r, "candidate", candidate_from_json, &candidate) &&
                     read_member(r, "incumbent", candidate_from_json, &order.incumbent) &&
                     read_member(r, "judged", evaluation_from_json, &order.judged);
  if (!whole || !candidate) return std::nullopt;
  order.candidate = std::move(*candidate);
  order.confirm = r.flag("confirm");
  order.variant = r.flag("variant");
  if (order.confirm && !order.incumbent) return std::nullopt;
  if (r.member("energy") != nullptr) {
    const JsonReader energy(r.object("energy"));
    const EnergyPlan usual;
    order.energy = EnergyPlan{static_cast<int>(energy.integer("windows", usual.windows)),
                              energy.real("window_s", usual.window_s)};
  }
  order.observe = r.flag("observe", true);
  order.inspect = r.flag("inspect");
  order.counters_above.reset();
  if (r.member("counters_above") != nullptr) order.counters_above = r.real("counters_above");
  return order;
}

std::string baseline_order_to_json(const BaselineOrder& order) {
  return dump_json({{"compiled", order.compiled},
                    {"seconds", order.seconds},
                    {"timeout_s", order.timeout_s},
                    {"cached", order.cached}});
}

std::optional<BaselineOrder> baseline_order_from_json(const std::string& json) {
  const std::optional<Json> root = parse_json(json);
  if (!root || !root->is_object()) return std::nullopt;
  const JsonReader r(*root);
  const BaselineOrder usual;
  return BaselineOrder{r.flag("compiled", usual.compiled), r.real("seconds", usual.seconds),
                       r.real("timeout_s", usual.timeout_s), r.flag("cached", usual.cached)};
}

std::string built_to_json(const Built& built) {
  Json json = {
      {"candidate", built.candidate}, {"code", built.code}, {"compile_ms", built.compile_ms}};
  if (built.error) json["error"] = built.error->log;
  return dump_json(json);
}

std::optional<Built> built_from_json(const std::string& json) {
  const std::optional<Json> root = parse_json(json);
  if (!root || !root->is_object()) return std::nullopt;
  const JsonReader r(*root);
  Built built{r.text("candidate"), r.text("code"), {}, r.real("compile_ms")};
  if (r.member("error") != nullptr) built.error = CompileError{r.text("error")};
  return built;
}

std::string measured_to_json(const Measured& measured) {
  Json json = {{"evidence", member(evidence_to_json(measured.evidence))},
               {"labels", measured.labels},
               {"phases_ms", measured.phases_ms}};
  if (measured.evaluation) json["evaluation"] = member(evaluation_to_json(*measured.evaluation));
  return dump_json(json);
}

std::optional<Measured> measured_from_json(const std::string& json) {
  const std::optional<Json> root = parse_json(json);
  if (!root) return std::nullopt;
  const JsonReader r(*root);
  Measured measured;
  std::optional<Evidence> evidence;
  const bool whole = read_member(r, "evaluation", evaluation_from_json, &measured.evaluation) &&
                     read_member(r, "evidence", evidence_from_json, &evidence);
  if (!whole || !evidence) return std::nullopt;
  measured.evidence = std::move(*evidence);
  for (const Json& label : r.array("labels")) {
    if (label.is_string()) measured.labels.push_back(label.get<std::string>());
  }
  for (const auto& [name, ms] : r.object("phases_ms").items()) {
    if (ms.is_number()) measured.phases_ms[name] = ms.get<double>();
  }
  return measured;
}

}  // namespace kernelpro
