// SPDX-License-Identifier: Apache-2.0
#include "write/model/budget.h"

#include <cstdio>

namespace kernelpro {
namespace {

std::string dollars(double usd) {
  char text[32];
  std::snprintf(text, sizeof text, "$%.4f", usd);
  return text;
}

}  // namespace

std::optional<std::string> Budget::admit(const Spend& worst) {
  const std::lock_guard lock(mutex_);
  if (limits_.calls && spent_.calls + aside_.calls + worst.calls > *limits_.calls) {
    return "all of the " + std::to_string(*limits_.calls) + " calls are used up";
  }
  if (limits_.tokens && spent_.tokens + aside_.tokens + worst.tokens > *limits_.tokens) {
    return std::to_string(spent_.tokens) + " of " + std::to_string(*limits_.tokens) +
           " tokens are spent and " + std::to_string(aside_.tokens) +
           " are set aside; this request may take " + std::to_string(worst.tokens);
  }
  if (limits_.usd && spent_.usd + aside_.usd + worst.usd > *limits_.usd) {
    return dollars(spent_.usd) + " of " + dollars(*limits_.usd) + " are spent and " +
           dollars(aside_.usd) + " set aside; this request may cost " + dollars(worst.usd);
  }
  aside_.calls += worst.calls;
  aside_.tokens += worst.tokens;
  aside_.usd += worst.usd;
  return std::nullopt;
}

void Budget::settle(const Spend& worst, const Spend& real) {
  const std::lock_guard lock(mutex_);
  aside_.calls -= worst.calls;
  aside_.tokens -= worst.tokens;
  aside_.usd -= worst.usd;
  if (aside_.tokens == 0 && aside_.calls == 0) aside_.usd = 0;  // clears the rounding residue
  spent_.calls += real.calls;
  spent_.tokens += real.tokens;
  spent_.usd += real.usd;
}

Spend Budget::spent() const {
  const std::lock_guard lock(mutex_);
  return spent_;
}

}  // namespace kernelpro
