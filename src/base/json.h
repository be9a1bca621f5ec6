// SPDX-License-Identifier: Apache-2.0
// For .cc files only: JSON with short names and checked reading. Any input may come from a damaged
// store or a hostile process.
#pragma once

#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace kernelpro {

using Json = nlohmann::ordered_json;

// Out of line: nlohmann's parser and writer are slow to compile.
// nullopt: not JSON.
std::optional<Json> parse_json(const std::string& text);
// Whether arrays and objects nest deeper than `most`, in any bytes. For text from outside, before
// it is parsed: readers of a tree recurse.
bool nests_deeper(std::string_view text, int most);
// Invalid UTF-8 (a candidate's output) becomes U+FFFD instead of an exception.
// `indent` -1: a single line.
std::string dump_json(const Json& json, int indent = -1);

// Reads members of an object; a missing or wrongly typed member gives the fallback.
class JsonReader {
 public:
  explicit JsonReader(const Json& json) : json_(json) {}

  std::string text(const char* name, std::string otherwise = "") const {
    const Json* v = member(name);
    return v != nullptr && v->is_string() ? v->get<std::string>() : otherwise;
  }
  double real(const char* name, double otherwise = 0) const {
    const Json* v = member(name);
    return v != nullptr && v->is_number() ? v->get<double>() : otherwise;
  }
  std::int64_t integer(const char* name, std::int64_t otherwise = 0) const {
    const Json* v = member(name);
    return v != nullptr && v->is_number_integer() ? v->get<std::int64_t>() : otherwise;
  }
  std::uint64_t natural(const char* name, std::uint64_t otherwise = 0) const {
    const Json* v = member(name);
    return v != nullptr && v->is_number_unsigned() ? v->get<std::uint64_t>() : otherwise;
  }
  bool flag(const char* name, bool otherwise = false) const {
    const Json* v = member(name);
    return v != nullptr && v->is_boolean() ? v->get<bool>() : otherwise;
  }
  // An empty array or object when missing.
  const Json& array(const char* name) const {
    static const Json empty = Json::array();
    const Json* v = member(name);
    return v != nullptr && v->is_array() ? *v : empty;
  }
  const Json& object(const char* name) const {
    static const Json empty = Json::object();
    const Json* v = member(name);
    return v != nullptr && v->is_object() ? *v : empty;
  }
  const Json* member(const char* name) const {
    if (!json_.is_object()) return nullptr;
    const auto it = json_.find(name);
    return it == json_.end() ? nullptr : &*it;
  }

 private:
  const Json& json_;
};

}  // namespace kernelpro
