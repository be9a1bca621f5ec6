// SPDX-License-Identifier: Apache-2.0
// The process was asked to end what it is doing. Async-signal-safe.
#pragma once

namespace kernelpro {

// Asks the run in this process to end after what it is doing now; safe in a signal handler. The run
// then returns with `stopped_by` = "interrupted" and can be resumed. Stays set until cleared.
void request_stop();
bool stop_requested();
void clear_stop();

}  // namespace kernelpro
