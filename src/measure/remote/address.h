// SPDX-License-Identifier: Apache-2.0
// How a station elsewhere is reached: a command that runs there and whose standard input and output
// carry the orders.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"

namespace kernelpro {

struct StationAddress {
  std::string name;                  // for messages: "user@host", or its name in the file
  std::vector<std::string> command;  // "ssh", ..., "kernelpro", "station", "--stdio"
};

// `text`: ssh://[USER@]HOST[:PORT][/PATH/TO/kernelpro], or the name of a table in the user's file
// of stations. $KERNELPRO_SSH replaces "ssh" and may have options ("ssh -F FILE"), split at blanks.
// Fails with kBadInput: neither of the two, or a damaged file.
Result<StationAddress> station_address(const std::string& text);

// $XDG_CONFIG_HOME/kernelpro/stations.toml, else ~/.config/kernelpro/stations.toml. Each table has
// either `address` (as above) or `command` (a list of strings):
//
//   [box]
//   address = "ssh://me@gpu-box"
//   [pod]
//   command = ["kubectl", "exec", "-i", "gpu-pod", "--", "kernelpro", "station", "--stdio"]
std::string stations_file();

}  // namespace kernelpro
