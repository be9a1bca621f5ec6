// SPDX-License-Identifier: Apache-2.0
// The vocabulary that links knobs to prescriptions. A source may use unlisted tags (they are
// explored, not prescribed); tools may prescribe only listed ones.
#pragma once

#include <string_view>

namespace kernelpro {

struct Tag {
  std::string_view name;
  std::string_view meaning;
};

const Tag* find_tag(std::string_view name);

}  // namespace kernelpro
