// SPDX-License-Identifier: Apache-2.0
// For .cc files only: checked reading of nlohmann's plain json, which is faster than base/json.h's
// ordered one. Reading evidence dominates the cost of a diagnosis. Safe on any value.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace kernelpro::plain {

using Plain = nlohmann::json;

// Members of an object; null, empty or "" where one is missing or of another type.
inline const Plain& member(const Plain& json, const char* name) {
  static const Plain none;
  if (!json.is_object()) return none;
  const auto it = json.find(name);
  return it == json.end() ? none : *it;
}

inline const Plain& object(const Plain& json, const char* name) {
  static const Plain empty = Plain::object();
  const Plain& value = member(json, name);
  return value.is_object() ? value : empty;
}

inline const Plain& array(const Plain& json, const char* name) {
  static const Plain empty = Plain::array();
  const Plain& value = member(json, name);
  return value.is_array() ? value : empty;
}

inline std::string text(const Plain& json, const char* name) {
  const Plain& value = member(json, name);
  return value.is_string() ? value.get<std::string>() : std::string();
}

}  // namespace kernelpro::plain
