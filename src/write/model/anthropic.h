// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "write/model/format.h"

namespace kernelpro {

// Any thread.
const Wire& anthropic_wire();

}  // namespace kernelpro
