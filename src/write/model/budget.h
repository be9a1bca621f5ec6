// SPDX-License-Identifier: Apache-2.0
// A spending limit shared by all clients of a run. A request is admitted only if its worst case
// (all of its input at full price, all of max_tokens) still fits on top of what is spent and what
// other requests in flight may spend, so no limit is exceeded, however many threads send requests.
// Thread-safe.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

#include "write/model/chat.h"

namespace kernelpro {

struct BudgetLimits {
  std::optional<std::int64_t> tokens;  // input, cached and output together
  std::optional<double> usd;
  std::optional<std::int64_t> calls;  // of complete(), however many attempts each takes
};

struct Spend {
  std::int64_t tokens = 0;
  double usd = 0;
  std::int64_t calls = 0;
};

class Budget {
 public:
  // `spent`: in earlier sittings.
  explicit Budget(const BudgetLimits& limits = {}, const Spend& spent = {})
      : limits_(limits), spent_(spent) {}

  // Reserves `worst`, or returns one sentence naming the limit that it exceeds. Settle each
  // admission once.
  std::optional<std::string> admit(const Spend& worst);
  // Ends an admission: releases `worst` and records the actual cost.
  void settle(const Spend& worst, const Spend& real);

  const BudgetLimits& limits() const { return limits_; }
  Spend spent() const;

 private:
  const BudgetLimits limits_;
  mutable std::mutex mutex_;
  Spend spent_;
  Spend aside_;
};

}  // namespace kernelpro
