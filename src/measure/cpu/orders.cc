// SPDX-License-Identifier: Apache-2.0
#include "measure/cpu/orders.h"

#include <utility>
#include <variant>

namespace kernelpro {

namespace {

constexpr int kFirst = 32;  // before anything is timed
constexpr int kMore = 4;

}  // namespace

Orders::Orders(std::unique_ptr<CpuSession> empty, double timeout_s, std::string phase)
    : empty_(std::move(empty)), timeout_s_(timeout_s), phase_(std::move(phase)) {}

Result<Orders> Orders::begin(CpuSession::Started empty, double timeout_s, std::string phase) {
  if (const Outcome* outcome = std::get_if<Outcome>(&empty)) {
    return fail(ErrorKind::kEnvironment,
                "a worker without a kernel could not start: " + outcome_summary(*outcome),
                "run `kernelpro doctor` to see what this machine allows");
  }
  Orders orders(std::move(std::get<std::unique_ptr<CpuSession>>(empty)), timeout_s,
                std::move(phase));
  orders.empty_->pause();
  orders.empty_->settle();
  KP_TRY(orders.give(kFirst));
  return orders;
}

Result<void> Orders::more() { return give(kMore); }

Result<void> Orders::give(int times) {
  empty_->begin_turn();
  for (int i = 0; i < times; ++i) {
    const auto called = empty_->timed_call({0, 1, 1, 0}, timeout_s_, phase_);
    if (const Outcome* outcome = std::get_if<Outcome>(&called)) {
      return fail(ErrorKind::kEnvironment,
                  "a worker without a kernel stopped answering: " + outcome_summary(*outcome),
                  "run the command again; `kernelpro doctor` shows what this machine allows");
    }
    wall_ns_.push_back(std::get<Called>(called).wall_ns);
  }
  cpu_ns_.push_back(empty_->end_turn().cpu_ns / times);
  cost_ = {typical_order(wall_ns_), typical_order(cpu_ns_)};
  return {};
}

}  // namespace kernelpro
