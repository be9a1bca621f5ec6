// SPDX-License-Identifier: Apache-2.0
#include "diagnose/record.h"

#include <algorithm>
#include <cmath>

#include "base/hash.h"
#include "base/json.h"

namespace kernelpro {

namespace {
constexpr double kHit = 1.05;
const double kPrior = 10 * std::log(1.3) * std::log(1.3);
const double kMostPromised = std::log(1.6);  // larger promises weigh no more: one miss is no proof
}  // namespace

double ToolHistory::mean_gain() const { return tried > 0 ? std::exp(log_measured / tried) : 1; }

double ToolHistory::calibration() const {
  return std::clamp((log_products + kPrior) / (log_squares + kPrior), 0.0, 3.0);
}

void ToolRecord::add(const std::string& tool, double predicted_likely, double measured) {
  ToolHistory& history = tools[tool];
  const double gained = std::log(std::max(1.0, measured));
  const double promised = std::log(std::max(1.0, predicted_likely));
  ++history.tried;
  history.hits += measured >= kHit ? 1 : 0;
  history.log_measured += gained;
  const double weight = promised > kMostPromised ? std::pow(kMostPromised / promised, 2) : 1;
  history.log_products += weight * promised * gained;
  history.log_squares += weight * promised * promised;
}

double ToolRecord::calibrated(const std::string& tool, double likely, double upper) const {
  const auto found = tools.find(tool);
  if (found == tools.end() || likely <= 1) return likely;
  return std::min(upper, std::exp(std::log(likely) * found->second.calibration()));
}

std::string ToolRecord::hash() const {
  return tools.empty() ? "" : hash_hex(record_to_json(*this));
}

std::string record_to_json(const ToolRecord& record) {
  Json tools = Json::object();
  for (const auto& [name, h] : record.tools) {
    tools[name] = {{"tried", h.tried},
                   {"hits", h.hits},
                   {"log_measured", h.log_measured},
                   {"log_products", h.log_products},
                   {"log_squares", h.log_squares}};
  }
  return dump_json({{"version", ToolRecord::kVersion}, {"tools", tools}});
}

std::optional<ToolRecord> record_from_json(const std::string& json) {
  const std::optional<Json> root = parse_json(json);
  if (!root || !root->is_object()) return std::nullopt;
  const JsonReader r(*root);
  if (r.integer("version", 0) != ToolRecord::kVersion) return std::nullopt;
  ToolRecord record;
  for (const auto& [name, item] : r.object("tools").items()) {
    const JsonReader h(item);
    record.tools[name] = {static_cast<int>(h.integer("tried", 0)),
                          static_cast<int>(h.integer("hits", 0)), h.real("log_measured", 0),
                          h.real("log_products", 0), h.real("log_squares", 0)};
  }
  return record;
}

}  // namespace kernelpro
