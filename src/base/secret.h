// SPDX-License-Identifier: Apache-2.0
// Random numbers that candidates must not predict.
#pragma once

#include <cstdint>

namespace kernelpro {

// Fresh bits from the kernel's generator: none follows from others. Any thread.
std::uint64_t secret_word();

}  // namespace kernelpro
