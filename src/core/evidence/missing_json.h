// SPDX-License-Identifier: Apache-2.0
// For .cc files only: `Missing` in JSON, as evidence and counter answers store it.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "core/evidence/missing.h"

namespace kernelpro {

Json missing_to_json(const std::vector<Missing>& missing);

// Before families had names, an entry said in words what was missing ("copy bandwidth"). Words that
// no version wrote give no entry.
std::vector<Missing> missing_from_words(const std::string& what, const std::string& reason,
                                        const std::string& next);

// What one object of a stored list says. A family unknown to this version gives no entry: stores
// outlive versions. `AnyJson` is one of nlohmann's types. Safe on any value.
template <class AnyJson>
std::vector<Missing> missing_from_json(const AnyJson& object) {
  if (!object.is_object()) return {};
  const auto text = [&](const char* name) {
    const auto it = object.find(name);
    return it != object.end() && it->is_string() ? it->template get<std::string>() : std::string();
  };
  if (object.contains("what")) {
    return missing_from_words(text("what"), text("reason"), text("next"));
  }
  const std::optional<Family> family = family_from_name(text("family"));
  if (!family) return {};
  Missing missing{*family, text("reason"), text("next"), {}, text("part")};
  const auto names = object.find("metrics");
  if (names != object.end() && names->is_array()) {
    for (const AnyJson& name : *names) {
      if (name.is_string()) missing.metrics.push_back(name.template get<std::string>());
    }
  }
  return {std::move(missing)};
}

}  // namespace kernelpro
