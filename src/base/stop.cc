// SPDX-License-Identifier: Apache-2.0
#include "base/stop.h"

#include <csignal>

namespace kernelpro {

namespace {

volatile std::sig_atomic_t stop_flag = 0;

}  // namespace

void request_stop() { stop_flag = 1; }
bool stop_requested() { return stop_flag != 0; }
void clear_stop() { stop_flag = 0; }

}  // namespace kernelpro
