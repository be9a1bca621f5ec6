// SPDX-License-Identifier: Apache-2.0
// Does a kernel take longer on a probe's values than on the task's own? Both come in calls of turns
// that look alike. A processor that is slow for a while is slow for both, so each call on a probe's
// values is compared with those on the task's own next to it. Pure.
#pragma once

#include <cstddef>
#include <map>
#include <vector>

#include "task/reference/module_reference.h"

namespace kernelpro {

class ValueTimes {
 public:
  // In the order of the calls. Of a call on the task's own values, with its order.
  void add_given(double wall_ns);
  // Of one on a probe's.
  void add_probe(DrawKind kind, double wall_ns);
  // Whether the probe's calls so far took longer, and a few more would tell whether that was
  // chance: one call may be late, but not all. `order_ns`: what an order takes.
  bool wants_more(DrawKind kind, double order_ns) const;
  struct Slower {
    DrawKind kind = DrawKind::kGiven;
    double probe_us = 0, given_us = 0;  // less the order
  };
  // The kinds on which every one of enough calls took longer.
  std::vector<Slower> slower(double order_ns) const;

 private:
  struct Probe {
    double wall_ns = 0;
    std::size_t at = 0;  // calls on the task's own values before it
  };
  // Of the call that is the least above its neighbours.
  Slower compare(DrawKind kind, double order_ns) const;
  double given_near_ns(std::size_t at) const;

  std::vector<double> given_ns_;
  std::map<DrawKind, std::vector<Probe>> probes_;
};

}  // namespace kernelpro
