// SPDX-License-Identifier: Apache-2.0
// cuBLAS's sgemm as a yardstick: n^3 in fp32 with TF32 off, row-major, L2 cold, timed with CUDA
// events. Loads cuBLAS at run time.
#pragma once

#include "base/error.h"

namespace kernelpro {

// Median microseconds of 40 calls. Fails with kEnvironment without a GPU or cuBLAS.
Result<double> cublas_us(int n);

}  // namespace kernelpro
