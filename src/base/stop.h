// SPDX-License-Identifier: Apache-2.0
// A request to stop the run in this process. Async-signal-safe.
#pragma once

namespace kernelpro {

// Stops the run after its current step; safe in a signal handler. The run then returns with
// `stopped_by` = "interrupted" and can be resumed. Stays set until cleared.
void request_stop();
bool stop_requested();
void clear_stop();

}  // namespace kernelpro
