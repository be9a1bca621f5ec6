// SPDX-License-Identifier: Apache-2.0
// The names of a machine's and a library's features that a source uses: what is hard to know and
// easy to say, so that a writer can be told that it compiled.
#pragma once

#include <set>
#include <string>
#include <string_view>

namespace kernelpro {

// Of C++ or CUDA: headers ("<cuda/barrier>"), intrinsics ("__shfl_xor_sync", "_mm256_fmadd_ps"),
// names of known libraries ("cute::copy"), PTX instructions without types and shapes
// ("wgmma.mma_async", "cp.async.bulk.tensor"), pragmas of OpenMP ("#pragma omp parallel"). Comments
// say nothing. Any bytes may come in. Pure.
std::set<std::string> api_names(std::string_view source);

}  // namespace kernelpro
