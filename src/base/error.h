// SPDX-License-Identifier: Apache-2.0
// The one error rule: expected failures are return values. A *candidate's* failure is an Outcome
// (core/evaluation/evaluation.h), never an Error; an Error is about the user's input, the machine
// or the run directory. `Fatal` is the only exception type: it ends the run and is caught in
// cli/main.cc. KP_ASSERT is for our own bugs only.
#pragma once

#include <stdexcept>
#include <string>
#include <tl/expected.hpp>
#include <utility>

namespace kernelpro {

// One exit code per kind, so that scripts can tell failures apart (listed in docs/run-store.md).
enum class ErrorKind {
  kBadInput = 2,     // the user's file or argument is wrong
  kEnvironment = 3,  // this machine lacks something
  kBusy = 4,         // another process holds the run
  kStore = 5,        // the run directory or its store cannot be used
  kTask = 6,         // the task is refused: its reference is wrong or it is degenerate
  kInternal = 70,    // our own bug
};

// What went wrong, where a caller tries something else because of it; nobody decides by words.
enum class Cause {
  kOther,
  kTooMuch,    // an answer exceeds its limit
  kNoCode,     // the file has no device code, or none of the kernels asked for
  kInUse,      // the hardware is another process's for now
  kForbidden,  // this user may not
  kProfiler,   // the profiling library refuses for another reason
  kGone,       // what was named existed once and no longer does
};

struct Error {
  ErrorKind kind = ErrorKind::kInternal;
  std::string message;  // what is wrong, one sentence
  std::string next;     // what the user can do about it, one sentence
  Cause cause = Cause::kOther;

  // "message\n  next: ..." as shown on a terminal.
  std::string text() const { return next.empty() ? message : message + "\n  next: " + next; }
};

template <class T>
using Result = tl::expected<T, Error>;

inline tl::unexpected<Error> fail(ErrorKind kind, std::string message, std::string next,
                                  Cause cause = Cause::kOther) {
  return tl::unexpected<Error>(Error{kind, std::move(message), std::move(next), cause});
}

class Fatal : public std::runtime_error {
 public:
  explicit Fatal(Error error) : std::runtime_error(error.text()), error_(std::move(error)) {}
  const Error& error() const { return error_; }

 private:
  Error error_;
};

[[noreturn]] void assertion_failed(const char* what, const char* file, int line);

}  // namespace kernelpro

#define KP_ASSERT(cond) \
  ((cond) ? static_cast<void>(0) : ::kernelpro::assertion_failed(#cond, __FILE__, __LINE__))

// Returns from the enclosing function with the error of an expression, if there is one, and ignores
// its value.
#define KP_TRY(...)                                                                \
  do {                                                                             \
    if (auto kp_try_result = (__VA_ARGS__); !kp_try_result)                        \
      return tl::unexpected<::kernelpro::Error>(std::move(kp_try_result.error())); \
  } while (0)

// Declares or assigns the value of an expression, a Result, or returns from the enclosing function
// with its error; what was to be assigned is then unchanged:
//
//   KP_ASSIGN(const Task task, load_task(path));
//   KP_ASSIGN(settings->key, key_of(spec));
//   KP_ASSIGN((const auto [first, last]), window_of(trace));  // a comma: in parentheses
//
// The value is moved out of the Result, which lives to the end of the block, so that `const Task&`
// may be declared too. These are several statements: an `if` needs braces around them, and without
// braces it does not compile.
#define KP_ASSIGN(declaration, ...) \
  KP_ASSIGN_FROM(KP_JOINED(kp_result_, __LINE__), declaration, __VA_ARGS__)

#define KP_ASSIGN_FROM(result, declaration, ...)                                     \
  auto result = (__VA_ARGS__);                                                       \
  if (!result) return tl::unexpected<::kernelpro::Error>(std::move(result.error())); \
  KP_BARE(declaration) = *std::move(result)

// Joins two tokens after expanding them.
#define KP_JOINED(a, ...) KP_JOINED_AS_IS(a, __VA_ARGS__)
#define KP_JOINED_AS_IS(a, ...) a##__VA_ARGS__

// Without the parentheses around `x`, if it has any. In both cases KP_BARED is left in front, where
// joining it with KP_NO_ makes it nothing.
#define KP_BARE(x) KP_JOINED(KP_NO_, KP_BARED x)
#define KP_BARED(...) KP_BARED __VA_ARGS__
#define KP_NO_KP_BARED
