// SPDX-License-Identifier: Apache-2.0
#include "write/model/apis.h"

#include <algorithm>
#include <iterator>

#include "base/error.h"

namespace kernelpro {

// Each is in the file with its name.
WireMaker anthropic_wire, openai_wire;

namespace {
constexpr ApiRow kApis[] = {
    {"anthropic", "https://api.anthropic.com", "ANTHROPIC_API_KEY", anthropic_wire},
    {"openai", "https://api.openai.com/v1", "OPENAI_API_KEY", openai_wire},
};

}  // namespace

std::span<const ApiRow> apis() { return kApis; }

const ApiRow& api_row(std::string_view name) {
  const auto* row = std::find_if(std::begin(kApis), std::end(kApis),
                                 [&](const ApiRow& each) { return each.name == name; });
  KP_ASSERT(row != std::end(kApis));
  return *row;
}

std::string model_forms() {
  std::string text;
  for (const ApiRow& row : kApis)
    text += (text.empty() ? "" : ", ") + std::string(row.name) + ":MODEL";
  return text + " or http://host:port/v1#MODEL";
}

}  // namespace kernelpro
