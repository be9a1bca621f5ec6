// SPDX-License-Identifier: Apache-2.0
// One question to a model, with look-ups, until its final answer. Blocks; any thread.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "write/calls.h"
#include "write/code_tools.h"
#include "write/model/client.h"
#include "write/run_tools.h"

namespace kernelpro {

struct Talk {
  std::string system;  // the same for all questions of a run, until ceilings improve
  std::string user;
  int max_tokens = 16000;
  std::optional<double> temperature;    // none: the model's own
  CodeTools* tools = nullptr;           // null or without libraries: no tools are offered
  Language language = Language::kCuda;  // the task's
  const RunTools* run_tools = nullptr;  // null: none
  int rounds = 8;                       // of look-ups; the model learns when they run out
  std::function<bool()> cancelled;
};

struct Said {
  CallOutcome outcome = CallOutcome::kReply;  // or the client's failure, or kToolLoop
  std::string text;                           // of a reply; of a truncated reply the part received
  std::string why;                            // of a failure, with what to do next
  std::optional<FailureKind> failure;         // of the client
  std::string tools;                          // look-ups and their answers, in Markdown
  CallUsage usage;
};

Said talk(ChatClient& client, const Talk& question);

}  // namespace kernelpro
