// SPDX-License-Identifier: Apache-2.0
// Where this user's lasting records lie. Reads the environment; any thread that does not change it.
#pragma once

#include <string>

namespace kernelpro {

// $KERNELPRO_STATE, else $KERNELPRO_CACHE, else $XDG_STATE_HOME/kernelpro, else
// ~/.local/state/kernelpro, else the cache's folder. It need not exist yet.
std::string state_dir();

}  // namespace kernelpro
