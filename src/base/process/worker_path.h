// SPDX-License-Identifier: Apache-2.0
// Where the files lie that are installed together with kernelpro.
#pragma once

#include <string>

#include "base/error.h"

namespace kernelpro {

// `name` beside the running executable, else in ../libexec/kernelpro (`make install`). The first of
// the two where neither exists.
std::string companion_path(const std::string& name);

// kernelpro-worker: $KERNELPRO_WORKER, else as companion_path. Fails with kEnvironment.
Result<std::string> worker_path();

}  // namespace kernelpro
