// SPDX-License-Identifier: Apache-2.0
// Finds the hardware and library features that a source uses: names that are hard to know but easy
// to pass on, so that writers can learn which ones compiled.
#pragma once

#include <set>
#include <string>
#include <string_view>

namespace kernelpro {

// For C++ or CUDA: headers ("<cuda/barrier>"), intrinsics ("__shfl_xor_sync", "_mm256_fmadd_ps"),
// names of known libraries ("cute::copy"), PTX instructions without types and shapes
// ("wgmma.mma_async", "cp.async.bulk.tensor"), OpenMP pragmas ("#pragma omp parallel"). Ignores
// comments. Safe on any bytes. Pure.
std::set<std::string> api_names(std::string_view source);

}  // namespace kernelpro
