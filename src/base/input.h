// SPDX-License-Identifier: Apache-2.0
// What is piped into the program.
#pragma once

#include <cstdint>
#include <string>

#include "base/error.h"

namespace kernelpro {

// Standard input to its end; blocks. Fails with kBadInput when it is empty or larger than
// `max_bytes`. `next`: what the user can do about an empty one.
Result<std::string> read_input(std::int64_t max_bytes, const std::string& next);

}  // namespace kernelpro
