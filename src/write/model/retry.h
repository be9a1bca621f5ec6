// SPDX-License-Identifier: Apache-2.0
// When to try again. Pure functions; times are in seconds.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "write/model/chat.h"

namespace kernelpro {

struct RetryPolicy {
  int max_attempts = 6;  // with the first
  double first_wait_s = 1;
  double factor = 2;
  double max_wait_s = 60;  // of our own; a server may ask for more
};

// How long to wait before attempt `attempt` (2, 3, ...). `chance` in [0, 1) spreads clients that
// failed together: own waits lie between half of the step and the whole; what a server asks for is
// waited in full, and up to a tenth longer.
double wait_before(const RetryPolicy& policy, int attempt, std::optional<double> asked_s,
                   double chance);

// What a server's headers ask for: retry-after-ms, else retry-after in seconds or as an HTTP date,
// which is compared with the server's own `date` where it sent one. nullopt: nothing readable.
// Never negative; at most a day.
std::optional<double> asked_wait(const std::string& retry_after_ms, const std::string& retry_after,
                                 const std::string& date, std::int64_t now_unix_s);

// Seconds since 1970 of "Sun, 06 Nov 1994 08:49:37 GMT".
std::optional<std::int64_t> parse_http_date(const std::string& text);

// Whether a failure of this kind may go away by itself.
bool worth_retrying(FailureKind kind);

}  // namespace kernelpro
