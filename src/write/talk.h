// SPDX-License-Identifier: Apache-2.0
// One question to a model until its last word, with look-ups in between. Blocks; any thread.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "write/calls.h"
#include "write/code_tools.h"
#include "write/model/client.h"

namespace kernelpro {

struct Talk {
  std::string system;  // the same for all questions of a run
  std::string user;
  int max_tokens = 16000;
  std::optional<double> temperature;  // none: the model's own
  CodeTools* tools = nullptr;         // null, or without libraries: none are offered
  int rounds = 8;                     // of look-ups; the model is told when they are used up
  std::function<bool()> cancelled;
};

struct Said {
  // "reply"; failure_name of the client's failure; "tool-loop" for a model that goes on looking
  // things up.
  std::string outcome;
  std::string text;                    // with "reply"; the part that came of a truncated one
  std::string why;                     // of a failure, with what to do next
  std::optional<FailureKind> failure;  // of the client
  std::string tools;                   // what was looked up, and the answers. Markdown
  CallUsage usage;
};

Said talk(ChatClient& client, const Talk& question);

}  // namespace kernelpro
