// SPDX-License-Identifier: Apache-2.0
// What all clients of a run together may use up. A request is admitted only if its worst case
// (all of its input at full price, all of max_tokens) still fits beside what is spent and what
// other requests under way may spend, so that no limit is passed, however many threads ask.
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
  std::optional<std::int64_t> calls;  // complete(), however many attempts it takes
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

  // Sets `worst` aside, or says in a sentence what does not fit. Each admission is settled once.
  std::optional<std::string> admit(const Spend& worst);
  // Ends an admission: gives `worst` back and counts what it really took.
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
