// SPDX-License-Identifier: Apache-2.0
// Which model, at which address, with which key. Pure, except for `key_of`, which reads the
// environment.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"

namespace kernelpro {

// A user writes one of
//   anthropic:MODEL                 Anthropic's Messages API at its own address
//   openai:MODEL                    OpenAI's chat API at its own address, and so on (apis.h)
//   http://host:port/v1#MODEL       the OpenAI-compatible chat API anywhere (also https)
//   anthropic:http://host:port#MODEL  the Messages API anywhere
// and may add options: ",temperature=0.7,max_tokens=16000".
struct ModelSpec {
  std::string_view api = "openai";  // of its row in apis.cc
  std::string base_url;             // without a slash at its end
  std::string model;
  std::string name;  // as the user wrote it, without options; the key for prices
  std::optional<double> temperature;
  std::optional<int> max_tokens;

  bool loopback() const;    // the address is on this machine
  bool first_hand() const;  // at the API's own address
};

// Fails with kBadInput.
Result<ModelSpec> parse_model_spec(std::string_view text);

// The environment variable with the key: the API's own only for its owner's address,
// KERNELPRO_API_KEY for any other.
const char* key_variable(const ModelSpec& spec);

// The key; "" for loopback without one. Fails with kEnvironment.
Result<std::string> key_of(const ModelSpec& spec);

// `text` with the key redacted, including any fragment of eight bytes or more.
std::string scrub(std::string_view text, const std::string& key);

}  // namespace kernelpro
