// SPDX-License-Identifier: Apache-2.0
// A server's failures in our words.
#pragma once

#include <string>

#include "write/model/chat.h"

namespace kernelpro {

// A reply with another status than 200. `body` may be anything.
Failure failure_of_status(int status, const std::string& body);
// A failure that a server describes in JSON: {"type": "overloaded_error", "message": ...} or
// {"code": 502, "message": ...}. `status`: of HTTP, 200 within a reply.
Failure failure_of_error(int status, const std::string& type, const std::string& code,
                         const std::string& message);
// What the user can do about a failure of this kind.
std::string next_step(FailureKind kind);

}  // namespace kernelpro
