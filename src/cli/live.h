// SPDX-License-Identifier: Apache-2.0
// Links to the live page, and how `optimize --open` finds the server that shows it.
#pragma once

#include <string>

#include "base/error.h"

namespace kernelpro {

// A server's address and its token; "" where the user knows it.
struct LiveServer {
  std::string url;  // "http://127.0.0.1:8341"
  std::string token;
};

// The token stands after "#", which browsers send to nobody. `run`: its folder, or "".
std::string live_link(const LiveServer& server, const std::string& run);

// For as long as it lives, `optimize --open` of this user finds the server of this folder of runs:
// through a file of the state folder that only the user can read.
class LiveNotice {
 public:
  LiveNotice(const std::string& runs, const LiveServer& server);
  ~LiveNotice();
  LiveNotice(const LiveNotice&) = delete;
  LiveNotice& operator=(const LiveNotice&) = delete;

 private:
  std::string path_;
};

// The server that shows the runs in this folder; starts one, which ends half an hour after its last
// client, where there is none. Fails with kEnvironment when it cannot be started.
Result<LiveServer> find_live_server(const std::string& runs);

// Opens the link in the user's browser where there is a desktop. Does not wait, and cannot fail.
void show_link(const std::string& link);

}  // namespace kernelpro
