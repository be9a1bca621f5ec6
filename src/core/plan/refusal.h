// SPDX-License-Identifier: Apache-2.0
// Why a worker process refuses a command, as the member "rule" of its answer (core/plan/protocol.h)
// names it. The supervisor decides by these; any other name is a rule for candidates that the
// candidate broke ("stream-escape", "not-a-tensor" ...), which it only passes on. Pure.
#pragma once

#include <string_view>

namespace kernelpro {

enum class RefusalKind {
  kNone,         // no rule: the command failed
  kEnvironment,  // the machine's fault; only a process that runs no candidate's host code may say
                 // so
  kTask,         // the task's fault
  kInput,        // the user's fault: the task has nothing of that name
  kReference,    // the task's native reference's fault
  kMemory,       // the machine has too little memory for the task
  kPlan,         // the plan does not fit its images
  kCompile,      // the candidate does not compile
  kOutput,       // "output-..." : a result of the wrong type, shape or place
  kNoKernel,     // `launch` launches nothing
  kException,    // `launch` threw
  kCudaError,    // `launch` ended with a CUDA error
  kBusy,         // another process holds the hardware for now
  kUnavailable,  // never here
  kForbidden,    // not to this user, with any program
  kBrokenRule,   // any other name
};

RefusalKind refusal_kind(std::string_view rule);
// The name that `refusal_kind` reads; kNone: "". Not for kOutput and kBrokenRule, which have many.
std::string_view refusal_name(RefusalKind kind);

}  // namespace kernelpro
