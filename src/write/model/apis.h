// SPDX-License-Identifier: Apache-2.0
// The APIs that models are asked over, one row each; to add one, a file with its Wire and a row in
// apis.cc. Pure.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace kernelpro {

class Wire;
using WireMaker = const Wire&();  // any thread

struct ApiRow {
  std::string_view name;      // before the colon: "anthropic"
  std::string_view base_url;  // its owner's address
  const char* key_variable;   // the environment variable with the key for that address
  WireMaker* wire;            // write/model/format.h
};

std::span<const ApiRow> apis();
// REQUIRES: there is such a row.
const ApiRow& api_row(std::string_view name);
// For messages: "anthropic:MODEL, openai:MODEL or http://host:port/v1#MODEL".
std::string model_forms();

}  // namespace kernelpro
