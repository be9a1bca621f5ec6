// SPDX-License-Identifier: Apache-2.0
// Which model, where it is served and with which key. Pure but for `key_of`, which reads the
// environment.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"

namespace kernelpro {

enum class Api { kAnthropic, kOpenAi };

// A user writes one of
//   anthropic:MODEL                 Anthropic's Messages API at its own address
//   openai:MODEL                    OpenAI's chat API at its own address
//   http://host:port/v1#MODEL       the OpenAI-compatible chat API anywhere (also https)
//   anthropic:http://host:port#MODEL  the Messages API anywhere
// and may add options: ",temperature=0.7,max_tokens=16000".
struct ModelSpec {
  Api api = Api::kOpenAi;
  std::string base_url;  // without a slash at its end
  std::string model;
  std::string name;  // as the user wrote it, without options: what prices are found by
  std::optional<double> temperature;
  std::optional<int> max_tokens;

  bool loopback() const;    // the address is this machine's own
  bool first_hand() const;  // at Anthropic's or OpenAI's own address
};

// Fails with kBadInput.
Result<ModelSpec> parse_model_spec(std::string_view text);

// The variable that holds the key: ANTHROPIC_API_KEY and OPENAI_API_KEY for their owners' addresses
// alone, KERNELPRO_API_KEY for every other one.
const char* key_variable(const ModelSpec& spec);

// The key; "" where loopback needs none. Fails with kEnvironment.
Result<std::string> key_of(const ModelSpec& spec);

// `text` with the key blotted out, also where eight bytes or more of it are shown.
std::string scrub(std::string_view text, const std::string& key);

}  // namespace kernelpro
