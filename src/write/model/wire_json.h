// SPDX-License-Identifier: Apache-2.0
// Bounded reading of untrusted JSON, for the .cc files of the wire formats. Pure functions.
#pragma once

#include <optional>
#include <string>

#include "base/json.h"
#include "write/model/failure.h"

namespace kernelpro {

// nullopt: not JSON, or nested deeper than 200 levels, which no format needs and some tree code
// cannot handle. Invalid UTF-8 bytes become '?'.
std::optional<Json> parse_foreign_json(const std::string& text);

// The JSON text of an object; "" counts as {}. nullopt: anything else.
std::optional<Json> parse_object(const std::string& text);

// A token count; missing, negative or absurd numbers give the fallback.
std::int64_t token_count(const Json& json, const char* name, std::int64_t otherwise = 0);

// The member "error" of a reply as a failure; nullopt: there is none.
std::optional<Failure> read_error(int status, const Json& json);

}  // namespace kernelpro
