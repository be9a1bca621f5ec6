// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "write/model/format.h"

namespace kernelpro {

// Any thread.
const Wire& openai_wire();

}  // namespace kernelpro
