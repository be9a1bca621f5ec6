// SPDX-License-Identifier: Apache-2.0
// Folder of this user's lasting records. Reads the environment, which no thread may change then.
#pragma once

#include <string>

namespace kernelpro {

// $KERNELPRO_STATE, else $KERNELPRO_CACHE, else $XDG_STATE_HOME/kernelpro, else
// ~/.local/state/kernelpro, else the cache folder. It need not exist yet.
std::string state_dir();

}  // namespace kernelpro
