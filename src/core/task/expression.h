// SPDX-License-Identifier: Apache-2.0
// Integer expressions over named dimensions, as in task.toml's shapes and counts: "ROWS",
// "2*M*N*K", "(COLS+31)/32". Operators + - * / % and parentheses, 64-bit, checked for overflow and
// division by zero.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "base/error.h"

namespace kernelpro {

Result<std::int64_t> evaluate_expression(std::string_view text,
                                         const std::map<std::string, std::int64_t>& names);

}  // namespace kernelpro
