// SPDX-License-Identifier: Apache-2.0
// Cancels, from another thread, a thread's waits on child processes. While a CancelScope is alive
// on a thread and its flag is set, every child that the thread waits for is killed as if it had run
// out of time (base/process/subprocess.h), and waits for locks end. The thread that set the flag
// discards whatever comes back. Threads started inside the scope are not covered.
#pragma once

#include <atomic>

namespace kernelpro {

class CancelScope {
 public:
  // `flag` must outlive the scope. Scopes nest; the innermost applies.
  explicit CancelScope(const std::atomic<bool>* flag);
  ~CancelScope();
  CancelScope(const CancelScope&) = delete;
  CancelScope& operator=(const CancelScope&) = delete;

 private:
  const std::atomic<bool>* outer_;
};

// Whether this thread is inside a scope, and whether that scope's flag is set.
bool in_cancel_scope();
bool cancel_requested();

}  // namespace kernelpro
