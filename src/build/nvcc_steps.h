// SPDX-License-Identifier: Apache-2.0
// nvcc runs its dozen steps one after the other, although the host's side of a source (cudafe++)
// and the device's (cicc, ptxas) wait for each other only where the object is compiled. Here the
// same steps, as `nvcc --dryrun` lists them, become a shell script that runs both sides at once.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace kernelpro {

// `listing`: what `nvcc --dryrun --keep --keep-dir .` says about one source file, asked in
// `folder`. The script is for sh, in any folder that holds that file: it leaves the files that nvcc
// leaves, says what nvcc says, in its order, and fails with the first step that does. Whoever runs
// it ends what it leaves running then. nullopt: the listing is not of the kind that is known here;
// use nvcc. A pure function.
std::optional<std::string> side_by_side(std::string_view listing, std::string_view folder);

}  // namespace kernelpro
