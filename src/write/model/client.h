// SPDX-License-Identifier: Apache-2.0
// A client for a language model, independent of the server. Every call ends within its deadline in
// a reply or in one failure, and both report the cost. Keys never appear in either. Thread-safe; a
// call blocks its own thread. Times are in seconds.
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
  std::function<bool()> cancelled;  // polled on the calling thread; may be empty
};

class ChatClient {
 public:
  virtual ~ChatClient() = default;
  virtual std::string name() const = 0;  // ModelSpec::name
  virtual ChatResult complete(const ChatRequest& request, const CallOptions& options = {}) = 0;
  // Sends a request without messages, which servers refuse at once and for nothing. Returns a
  // failure that every call would meet: nobody answers there, the key is refused, the model is
  // unknown. nullopt: none of these, as far as the server tells within seconds. Counts as no call.
  virtual std::optional<Failure> knock() = 0;
  // A snapshot.
  virtual Counts counts() const = 0;
};

struct ClientSettings {
  ModelSpec spec;
  std::string key;             // from key_of; "" sends none
  std::optional<Price> price;  // none: unknown
  Budget* budget = nullptr;    // shared with other clients, outlives them; null: no limit
  RetryPolicy retry;
  double timeout_s = 900;  // per call, with all attempts and waits
  double stall_s = 180;    // without a byte: long reasoning and model loading are silent
  double connect_timeout_s = 20;
  std::int64_t max_bytes = 64LL << 20;  // per answer
  // Waits between attempts; empty: sleeps, and wakes when cancelled. A seam for tests.
  std::function<void(double)> pause;
};

// Temperature and max_tokens come from the spec if set there; a request's own temperature takes
// precedence. Fails with kEnvironment when libcurl is missing.
Result<std::unique_ptr<ChatClient>> make_client(const ClientSettings& settings);

// Settings from the user's text: parses `text`, reads the key and the price table.
Result<ClientSettings> settings_for(std::string_view text);

}  // namespace kernelpro
