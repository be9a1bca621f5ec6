// SPDX-License-Identifier: Apache-2.0
// Host side of the input generator (core/device/draw.h defines every draw). Pure; threads may draw
// disjoint ranges concurrently.
#pragma once

#include <cmath>
#include <cstdint>

// draw.h includes nothing.
using std::fma;
using std::fmaf;
#include "core/device/draw.h"
#include "core/task/task.h"

namespace kernelpro {

kp::DrawSpec draw_spec(const Tensor& tensor);

// Writes elements [first, first + count) of a tensor under `key` to `out`, in the tensor's type.
// `index`: the tensor's position in Args.
void draw_inputs(const Tensor& tensor, int index, const kp::Key& key, std::int64_t first,
                 std::int64_t count, void* out);

// Element i of a buffer of this type, as a double (integers and bools too; int64 rounds).
double element_as_double(DType dtype, const void* data, std::int64_t i);

}  // namespace kernelpro
