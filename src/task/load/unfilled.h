// SPDX-License-Identifier: Apache-2.0
// Lines that a scaffold (task/scaffold/scaffold.h) leaves for a person to fill in, marked with the
// word below. A task that still has one is refused, so that a guess never passes for a decision.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"

namespace kernelpro {

inline constexpr std::string_view kUnfilled = "TODO(kernelpro)";

// Fails with kBadInput if `text` has such lines; lists each with path, line and text.
Result<void> refuse_unfilled(std::string_view text, const std::string& path);

}  // namespace kernelpro
