// SPDX-License-Identifier: Apache-2.0
// One thread that creates all child processes and lives as long as the program. Linux sends a child
// its parent-death signal when the *thread* that created it exits, and children outlive the threads
// that request them.
#pragma once

#include <functional>

namespace kernelpro {

// Runs `work` on that thread and returns when it is done. Thread-safe; also works in a forked
// process whose parent had used it.
void on_spawner_thread(const std::function<void()>& work);

}  // namespace kernelpro
