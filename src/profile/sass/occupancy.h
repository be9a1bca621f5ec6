// SPDX-License-Identifier: Apache-2.0
// Occupancy: how many blocks of a kernel are resident on a multiprocessor, how many each resource
// allows, and what would fit one more. Pure.
#pragma once

#include "core/machine/architecture.h"

namespace kernelpro {

struct BlockNeeds {
  int threads = 0;
  int registers = 0;         // per thread
  int shared_bytes = 0;      // static and dynamic, per block
  int barriers = 1;          // named barriers used
  int cluster = 1;           // blocks in a cluster
  int shared_carveout = -1;  // the kernel's preferred percentage; -1: the driver's choice
};

struct Occupancy {
  int blocks = 0;  // resident per multiprocessor; 0: the kernel cannot be launched
  int warps = 0;
  double fraction = 0;  // resident warps over the multiprocessor's maximum
  // Blocks that each resource alone allows; kUnlimited if the kernel does not use it.
  static constexpr int kUnlimited = 1 << 20;
  int by_registers = kUnlimited;
  int by_shared = kUnlimited;
  int by_warps = 0;
  int by_blocks = 0;
  int by_barriers = kUnlimited;
  // Usage at which this resource would allow one more block; 0: no usage would.
  int registers_for_more = 0;     // per thread
  int shared_bytes_for_more = 0;  // per block
};
// REQUIRES: needs.threads > 0. Clusters are checked against one multiprocessor only: how many
// clusters a GPU holds depends on its layout.
Occupancy occupancy(const SmLimits& sm, const BlockNeeds& needs);

}  // namespace kernelpro
