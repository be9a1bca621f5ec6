// SPDX-License-Identifier: Apache-2.0
// A language model to ask, whoever serves it. Every call ends in a reply or in one failure, within
// its deadline, and both say what was paid. Keys never appear in either.
// Thread-safe; a call blocks its own thread. Times are in seconds.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/error.h"
#include "write/model/budget.h"
#include "write/model/chat.h"
#include "write/model/prices.h"
#include "write/model/retry.h"
#include "write/model/spec.h"

namespace kernelpro {

struct CallOptions {
  std::function<bool()> cancelled;  // asked often, on the calling thread; may be empty
  // Told of the reply's text as it comes; an attempt that is repeated starts anew. May be empty.
  std::function<void(std::string_view)> on_text;
};

class ChatClient {
 public:
  virtual ~ChatClient() = default;
  virtual std::string name() const = 0;  // ModelSpec::name
  virtual ChatResult complete(const ChatRequest& request, const CallOptions& options = {}) = 0;
  // A snapshot.
  virtual Counts counts() const = 0;
};

struct ClientSettings {
  ModelSpec spec;
  std::string key;             // of key_of; "" sends none
  std::optional<Price> price;  // none: unknown
  Budget* budget = nullptr;    // shared with other clients, outlives them; none: no limit
  RetryPolicy retry;
  double timeout_s = 900;  // a call with all its attempts and waits
  double stall_s = 180;    // without a byte: long thoughts and loading a model are silent
  double connect_timeout_s = 20;
  std::int64_t max_bytes = 64LL << 20;  // of one answer
  // Waits between attempts; empty: sleeps, waking when cancelled. A seam for tests.
  std::function<void(double)> pause;
};

// Takes temperature and max_tokens from the spec where it has them; a request's own temperature
// comes first. Fails with kEnvironment when libcurl is missing.
Result<std::unique_ptr<ChatClient>> make_client(const ClientSettings& settings);

// The same from what a user writes: parses `text`, reads the key and the price table.
Result<ClientSettings> settings_for(std::string_view text);

}  // namespace kernelpro
