// SPDX-License-Identifier: Apache-2.0
// Tables with a row for each value of an enum.
#pragma once

#include <cstddef>

namespace kernelpro {

// Whether row i is that of value i, so that a value finds its row by its number.
template <class Row, std::size_t count, class Key>
constexpr bool rows_are_in_order(const Row (&rows)[count], Key Row::*key) {
  for (std::size_t i = 0; i < count; ++i) {
    if (static_cast<std::size_t>(rows[i].*key) != i) return false;
  }
  return true;
}

}  // namespace kernelpro
