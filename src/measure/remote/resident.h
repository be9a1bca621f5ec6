// SPDX-License-Identifier: Apache-2.0
// The other end of a connection: `kernelpro station --stdio SESSION`, which ssh starts, only passes
// bytes on to a resident process of the session, which it starts if there is none. The resident
// survives lost connections, keeps each answer until it was received, and answers no question
// twice. It ends with the client's goodbye, or after a while without a connection.
#pragma once

#include <string>

#include "base/error.h"
#include "measure/station/station.h"

namespace kernelpro {

// Passes standard input on to the session's resident and its answers to standard output, until
// either side ends. Fails with kBadInput on a name that is no session's, with kEnvironment where no
// resident can be started.
Result<void> relay(const std::string& session);

// Is the resident of a session, until it ends. `maker`: as Service. $KERNELPRO_STATION_GRACE:
// seconds without a connection after which it ends (default 900).
Result<void> reside(const std::string& session, StationMaker maker = nullptr);

}  // namespace kernelpro
