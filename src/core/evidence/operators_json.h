// SPDX-License-Identifier: Apache-2.0
// For .cc files only.
#pragma once

#include <vector>

#include "base/json.h"
#include "base/plain_json.h"
#include "core/evidence/operators.h"

namespace kernelpro {

Json operators_to_json(const std::vector<OperatorCall>& operators);
// Drops the rest from the first damaged one on, whose successors would point astray.
std::vector<OperatorCall> operators_from_json(const plain::Plain& list);

}  // namespace kernelpro
