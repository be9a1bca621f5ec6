// SPDX-License-Identifier: Apache-2.0
// Maps a server's failures to ours.
#pragma once

#include <string>

#include "write/model/chat.h"

namespace kernelpro {

// A reply with a status other than 200. `body` may be anything.
Failure failure_of_status(int status, const std::string& body);
// A failure that a server describes in JSON: {"type": "overloaded_error", "message": ...} or
// {"code": 502, "message": ...}. `status`: HTTP status; 200 inside a reply.
Failure failure_of_error(int status, const std::string& type, const std::string& code,
                         const std::string& message);
// Advice to the user for a failure of this kind.
std::string next_step(FailureKind kind);

}  // namespace kernelpro
