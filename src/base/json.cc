// SPDX-License-Identifier: Apache-2.0
#include "base/json.h"

namespace kernelpro {

std::optional<Json> parse_json(const std::string& text) {
  Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) return std::nullopt;
  return json;
}

std::string dump_json(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace kernelpro
