// SPDX-License-Identifier: Apache-2.0
// For .cc files only.
#pragma once

#include <vector>

#include "core/json.h"
#include "core/operators.h"
#include "core/plain_json.h"

namespace kernelpro {

Json operators_to_json(const std::vector<OperatorCall>& operators);
// Drops the rest from the first damaged one on, whose successors would point astray.
std::vector<OperatorCall> operators_from_json(const plain::Plain& list);

}  // namespace kernelpro
