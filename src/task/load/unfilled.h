// SPDX-License-Identifier: Apache-2.0
// Places that a scaffold (task/scaffold/scaffold.h) leaves for a person: lines with the word below.
// A task that still has one is refused, so that a guess is never taken for a decision.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"

namespace kernelpro {

inline constexpr std::string_view kUnfilled = "TODO(kernelpro)";

// Fails with kBadInput when `text` has such a line: names each by path and line, with what it says.
Result<void> refuse_unfilled(std::string_view text, const std::string& path);

}  // namespace kernelpro
