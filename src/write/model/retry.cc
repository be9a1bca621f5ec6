// SPDX-License-Identifier: Apache-2.0
#include "write/model/retry.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>

#include "base/text.h"

namespace kernelpro {
namespace {

constexpr double kDay = 86400;

std::optional<double> read_seconds(const std::string& text) {
  const std::string_view word = trim(text);
  double value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || end != word.data() + word.size() || !std::isfinite(value)) {
    return std::nullopt;
  }
  return value;
}

// Days from 1970-01-01 to a day of the Gregorian calendar: whole years, their leap days, the
// months.
std::int64_t days_to(int year, int month, int day) {
  static constexpr std::array<int, 12> before = {0,   31,  59,  90,  120, 151,
                                                 181, 212, 243, 273, 304, 334};
  const std::int64_t last = year - 1;
  std::int64_t days = 365 * (year - 1970LL) + (last / 4 - last / 100 + last / 400) - 477;
  const bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
  days += before[static_cast<std::size_t>(month - 1)] + (leap && month > 2 ? 1 : 0) + day - 1;
  return days;
}

}  // namespace

double wait_before(const RetryPolicy& policy, int attempt, std::optional<double> asked_s,
                   double chance) {
  const double step =
      std::min(policy.max_wait_s, policy.first_wait_s * std::pow(policy.factor, attempt - 2));
  if (asked_s) return *asked_s * (1 + 0.1 * chance);
  return step * (0.5 + 0.5 * chance);
}

std::optional<std::int64_t> parse_http_date(const std::string& text) {
  char month_name[4] = {};
  char zone[4] = {};
  int day = 0, year = 0, hour = 0, minute = 0, second = 0;
  const char* comma = text.size() < 64 ? text.c_str() + std::min(text.find(','), text.size()) : "";
  if (std::sscanf(comma, ", %2d %3s %4d %2d:%2d:%2d %3s", &day, month_name, &year, &hour, &minute,
                  &second, zone) != 7) {
    return std::nullopt;
  }
  static constexpr std::string_view months = "JanFebMarAprMayJunJulAugSepOctNovDec";
  const std::size_t at = months.find(month_name);
  const bool in_range = day >= 1 && day <= 31 && year >= 1970 && hour >= 0 && hour <= 23 &&
                        minute >= 0 && minute <= 59 && second >= 0 && second <= 60;
  if (at == std::string_view::npos || at % 3 != 0 || std::string_view(month_name).size() != 3 ||
      std::string_view(zone) != "GMT" || !in_range) {
    return std::nullopt;
  }
  return days_to(year, static_cast<int>(at / 3) + 1, day) * 86400 + hour * 3600 + minute * 60 +
         second;
}

std::optional<double> asked_wait(const std::string& retry_after_ms, const std::string& retry_after,
                                 const std::string& date, std::int64_t now_unix_s) {
  if (const auto ms = read_seconds(retry_after_ms)) return std::clamp(*ms / 1000, 0.0, kDay);
  if (const auto seconds = read_seconds(retry_after)) return std::clamp(*seconds, 0.0, kDay);
  if (const auto until = parse_http_date(retry_after)) {
    const std::int64_t now = parse_http_date(date).value_or(now_unix_s);
    return std::clamp(static_cast<double>(*until - now), 0.0, kDay);
  }
  return std::nullopt;
}

bool worth_retrying(FailureKind kind) {
  switch (kind) {
    case FailureKind::kOverloaded:
    case FailureKind::kRateLimited:
    case FailureKind::kTimedOut:
    case FailureKind::kCutStream:
    case FailureKind::kUnreachable:
    case FailureKind::kServerError:
      return true;
    default:
      return false;
  }
}

}  // namespace kernelpro
