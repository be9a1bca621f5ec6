// SPDX-License-Identifier: Apache-2.0
// What it costs to order a call: measured again and again on a worker that does nothing when it is
// called, and subtracted from the time of others. Used by one thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "measure/cpu/session.h"
#include "measure/cpu/turns.h"

namespace kernelpro {

class Orders {
 public:
  // `empty`: what came of starting a worker without a kernel. `phase`: for messages.
  static Result<Orders> begin(CpuSession::Started empty, double timeout_s, std::string phase);
  // Measures a few more; before each turn or pair.
  Result<void> more();
  // The typical one of all so far.
  const OrderCost& cost() const { return cost_; }

 private:
  Orders(std::unique_ptr<CpuSession> empty, double timeout_s, std::string phase);
  Result<void> give(int times);

  std::unique_ptr<CpuSession> empty_;
  double timeout_s_;
  std::string phase_;
  std::vector<double> wall_ns_, cpu_ns_;
  OrderCost cost_;
};

}  // namespace kernelpro
