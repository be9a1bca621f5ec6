// SPDX-License-Identifier: Apache-2.0
#include "core/evidence.h"

#include "base/error.h"
#include "core/json.h"
#include "core/metrics.h"

namespace kernelpro {

namespace {
constexpr std::string_view kLevels[] = {"counters", "static", "timing"};
}

std::string_view level_name(Level level) { return kLevels[static_cast<int>(level)]; }

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

namespace {

Json to_json(const Evidence& evidence) {
  Json items = Json::object();
  for (const auto& [name, item] : evidence.items()) {
    items[name] = {
        {"value", item.value}, {"level", level_name(item.level)}, {"source", item.source}};
  }
  Json missing = Json::array();
  for (const Missing& m : evidence.missing()) {
    missing.push_back({{"what", m.what}, {"reason", m.reason}, {"next", m.next}});
  }
  Json json = {{"items", items}, {"texts", evidence.texts}, {"missing", missing}};
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

Evidence from_json(const JsonReader& r, bool with_kernels) {
  Evidence evidence;
  for (const auto& [name, item] : r.object("items").items()) {
    const JsonReader ir(item);
    const Json* value = ir.member("value");
    // A metric that this version does not know is left out, not an error: stores outlive versions.
    if (value == nullptr || !value->is_number() || find_metric(name) == nullptr) continue;
    Level level = Level::kTiming;
    for (int i = 0; i < 3; ++i) {
      if (kLevels[i] == ir.text("level")) level = static_cast<Level>(i);
    }
    evidence.set(name, value->get<double>(), level, ir.text("source"));
  }
  for (const auto& [name, text] : r.object("texts").items()) {
    if (text.is_string()) evidence.texts[name] = text.get<std::string>();
  }
  for (const Json& m : r.array("missing")) {
    const JsonReader mr(m);
    evidence.note_missing({mr.text("what"), mr.text("reason"), mr.text("next")});
  }
  if (!with_kernels) return evidence;
  for (const Json& item : r.array("kernels")) {
    const JsonReader kr(item);
    evidence.kernels.push_back({kr.text("name"), from_json(kr, false)});
  }
  return evidence;
}

}  // namespace

std::string evidence_to_json(const Evidence& evidence) { return dump_json(to_json(evidence)); }

std::optional<Evidence> evidence_from_json(const std::string& json) {
  const std::optional<Json> root = parse_json(json);
  if (!root || !root->is_object()) return std::nullopt;
  return from_json(JsonReader(*root), true);
}

}  // namespace kernelpro
