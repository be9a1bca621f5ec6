// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/error.h"

namespace kernelpro {

// The program kernelpro-worker: $KERNELPRO_WORKER, else beside the running executable. Fails with
// kEnvironment.
Result<std::string> worker_path();

}  // namespace kernelpro
