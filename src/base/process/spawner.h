// SPDX-License-Identifier: Apache-2.0
// One thread that makes all child processes and lives as long as the program: Linux sends a child
// its parent-death signal when the *thread* that made it ends, and children outlive the threads
// that ask for them.
#pragma once

#include <functional>

namespace kernelpro {

// Runs `work` on that thread and returns when it is done. Thread-safe; also in a process that was
// forked from one that had used it.
void on_spawner_thread(const std::function<void()>& work);

}  // namespace kernelpro
