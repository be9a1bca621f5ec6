// SPDX-License-Identifier: Apache-2.0
// Ends what a thread waits for in child processes, from another thread: while a CancelScope is
// alive on a thread and its flag is set, every child that this thread waits for is ended as if its
// time were up (base/process/subprocess.h), and waits for locks end. Who set the flag throws away
// what then comes back. Threads that the thread starts are not in the scope.
#pragma once

#include <atomic>

namespace kernelpro {

class CancelScope {
 public:
  // `flag` must outlive the scope. Scopes nest: the innermost holds.
  explicit CancelScope(const std::atomic<bool>* flag);
  ~CancelScope();
  CancelScope(const CancelScope&) = delete;
  CancelScope& operator=(const CancelScope&) = delete;

 private:
  const std::atomic<bool>* outer_;
};

// Whether this thread is within a scope, and whether that scope's flag is set.
bool in_cancel_scope();
bool cancel_requested();

}  // namespace kernelpro
