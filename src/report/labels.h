// SPDX-License-Identifier: Apache-2.0
// Meanings of a verdict's labels; docs/evaluation.md describes each in detail.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kernelpro {

struct Label {
  std::string_view name;
  std::string_view meaning;  // one line
};

const std::vector<Label>& known_labels();
// The meaning of a label; "" for an unknown name.
std::string_view label_meaning(std::string_view name);
// The meaning of an evaluation's trust: "plan", "in-process", "module".
std::string_view trust_meaning(std::string_view trust);

}  // namespace kernelpro
