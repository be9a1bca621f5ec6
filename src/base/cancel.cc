// SPDX-License-Identifier: Apache-2.0
#include "base/cancel.h"

namespace kernelpro {

namespace {
thread_local const std::atomic<bool>* current = nullptr;
}  // namespace

CancelScope::CancelScope(const std::atomic<bool>* flag) : outer_(current) { current = flag; }

CancelScope::~CancelScope() { current = outer_; }

bool in_cancel_scope() { return current != nullptr; }

bool cancel_requested() { return current != nullptr && current->load(std::memory_order_relaxed); }

}  // namespace kernelpro
