// SPDX-License-Identifier: Apache-2.0
// nvcc runs its dozen steps in sequence, although the host side of a source (cudafe++) and the
// device side (cicc, ptxas) only meet where the object is compiled. This turns the same steps, as
// listed by `nvcc --dryrun`, into a shell script that runs both sides at once.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace kernelpro {

// `listing`: output of `nvcc --dryrun --keep --keep-dir .` for one source file, run in `folder`.
// The script is for sh, in any folder that holds that file: it leaves the same files as nvcc,
// prints the same output in the same order, and fails with the first step that fails. The caller
// must then kill what is still running. nullopt: the listing has an unknown form; use nvcc. A pure
// function.
std::optional<std::string> side_by_side(std::string_view listing, std::string_view folder);

}  // namespace kernelpro
