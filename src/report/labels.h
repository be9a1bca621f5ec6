// SPDX-License-Identifier: Apache-2.0
// What the labels of a verdict mean; docs/evaluation.md tells more about each.
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
// The line for a name; "" when there is none.
std::string_view label_meaning(std::string_view name);
// The same for the trust of an evaluation: "plan", "in-process", "module".
std::string_view trust_meaning(std::string_view trust);

}  // namespace kernelpro
