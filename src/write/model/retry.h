// SPDX-License-Identifier: Apache-2.0
// When to retry. Pure functions; times are in seconds.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "write/model/chat.h"

namespace kernelpro {

struct RetryPolicy {
  int max_attempts = 6;  // including the first
  double first_wait_s = 1;
  double factor = 2;
  double max_wait_s = 60;  // our own limit; a server may request more
};

// The wait before attempt `attempt` (2, 3, ...). `chance` in [0, 1) spreads clients that failed
// together: our own waits are between half a step and a whole one; a server's requested wait is
// kept in full, plus up to a tenth.
double wait_before(const RetryPolicy& policy, int attempt, std::optional<double> asked_s,
                   double chance);

// The wait that a server's headers request: retry-after-ms, else retry-after in seconds or as an
// HTTP date, which is compared with the server's own `date` if sent. nullopt: nothing readable.
// Never negative; at most a day.
std::optional<double> asked_wait(const std::string& retry_after_ms, const std::string& retry_after,
                                 const std::string& date, std::int64_t now_unix_s);

// Parses "Sun, 06 Nov 1994 08:49:37 GMT" to seconds since 1970.
std::optional<std::int64_t> parse_http_date(const std::string& text);

// Whether a failure of this kind may be transient.
bool worth_retrying(FailureKind kind);

}  // namespace kernelpro
