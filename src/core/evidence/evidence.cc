// SPDX-License-Identifier: Apache-2.0
#include "core/evidence/evidence.h"

#include <algorithm>

#include "base/error.h"
#include "base/json.h"
#include "base/plain_json.h"
#include "core/evidence/metrics.h"
#include "core/evidence/missing_json.h"
#include "core/evidence/operators_json.h"
#include "core/evidence/places_json.h"

namespace kernelpro {

void Evidence::set(const std::string& name, double value, std::string source) {
  const Metric* metric = find_metric(name);
  KP_ASSERT(metric != nullptr);
  set(name, value, metric->level, std::move(source));
}

void Evidence::set(const std::string& name, double value, Level level, std::string source) {
  KP_ASSERT(find_metric(name) != nullptr);
  KP_ASSERT(std::isfinite(value));
  items_[name] = {value, level, std::move(source)};
}

std::optional<double> Evidence::get(const std::string& name) const {
  const Observation* item = find(name);
  return item != nullptr ? std::optional<double>(item->value) : std::nullopt;
}

const Observation* Evidence::find(const std::string& name) const {
  const auto it = items_.find(name);
  return it == items_.end() ? nullptr : &it->second;
}

void Evidence::forget(Family family) {
  for (const Metric& metric : metrics_of(family)) items_.erase(std::string(metric.name));
  std::erase_if(missing_, [&](const Missing& each) { return each.family == family; });
}

const Missing* why_missing(const Evidence& evidence, std::string_view metric) {
  const Metric* row = find_metric(metric);
  if (row == nullptr) return nullptr;
  const Missing* of_family = nullptr;
  for (const Missing& each : evidence.missing()) {
    if (each.family != row->family || !each.part.empty()) continue;
    const auto& names = each.metrics;
    if (std::find(names.begin(), names.end(), metric) != names.end()) return &each;
    if (names.empty() && of_family == nullptr) of_family = &each;
  }
  return of_family;
}

namespace {

constexpr std::string_view kLinesText = "line of ";

Json to_json(const Evidence& evidence) {
  Json items = Json::object();
  for (const auto& [name, item] : evidence.items()) {
    items[name] = {
        {"value", item.value}, {"level", level_name(item.level)}, {"source", item.source}};
  }
  Json json = {{"items", items},
               {"texts", evidence.texts},
               {"missing", missing_to_json(evidence.missing())}};
  if (evidence.places) json["places"] = places_to_json(*evidence.places);
  if (!evidence.lines.empty()) json["lines"] = lines_to_json(evidence.lines);
  if (!evidence.sites.empty()) json["sites"] = sites_to_json(evidence.sites);
  if (!evidence.operators.empty()) json["operators"] = operators_to_json(evidence.operators);
  if (!evidence.kernels.empty()) {
    Json kernels = Json::array();
    for (const KernelEvidence& kernel : evidence.kernels) {
      Json item = to_json(kernel.facts);
      item["name"] = kernel.name;
      kernels.push_back(std::move(item));
    }
    json["kernels"] = std::move(kernels);
  }
  return json;
}

using plain::array;
using plain::member;
using plain::object;
using plain::Plain;
using plain::text;

Evidence from_json(const Plain& json, bool with_kernels) {
  Evidence evidence;
  for (const auto& [name, item] : object(json, "items").items()) {
    const Plain& value = member(item, "value");
    // Skip metrics unknown to this version: stores outlive versions.
    if (!value.is_number() || find_metric(name) == nullptr) continue;
    const Level level = level_from_name(text(item, "level")).value_or(Level::kTiming);
    evidence.set(name, value.get<double>(), level, text(item, "source"));
  }
  for (const auto& [name, item] : object(json, "texts").items()) {
    if (!item.is_string()) continue;
    // Evidence of earlier versions has lines among its texts.
    if (name.starts_with(kLinesText)) {
      evidence.lines[name.substr(kLinesText.size())] = lines_from_text(item.get<std::string>());
    } else {
      evidence.texts[name] = item.get<std::string>();
    }
  }
  for (const Plain& each : array(json, "missing")) {
    for (Missing& missing : missing_from_json(each)) evidence.note_missing(std::move(missing));
  }
  evidence.places = places_from_json(member(json, "places"));
  evidence.lines.merge(lines_from_json(object(json, "lines")));
  evidence.sites = sites_from_json(array(json, "sites"));
  if (!with_kernels) return evidence;
  evidence.operators = operators_from_json(member(json, "operators"));
  for (const Plain& item : array(json, "kernels")) {
    evidence.kernels.push_back({text(item, "name"), from_json(item, false)});
  }
  return evidence;
}

}  // namespace

std::string evidence_to_json(const Evidence& evidence) { return dump_json(to_json(evidence)); }

std::optional<Evidence> evidence_from_json(const std::string& json) {
  const Plain root = Plain::parse(json, nullptr, false);
  if (!root.is_object()) return std::nullopt;
  return from_json(root, true);
}

}  // namespace kernelpro
