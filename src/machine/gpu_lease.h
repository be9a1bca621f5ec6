// SPDX-License-Identifier: Apache-2.0
// One user at a time per GPU, across processes: who measures holds the lease, who compiles or waits
// for a model does not. A lock file per GPU (flock), so that a killed holder leaves nothing behind.
// Children do not inherit it. Leases are between processes; within one, take it in one place.
#pragma once

#include <string>

#include "base/error.h"
#include "base/files.h"

namespace kernelpro {

class GpuLease {
 public:
  GpuLease() = default;
  GpuLease(GpuLease&&) noexcept = default;
  GpuLease& operator=(GpuLease&& other) noexcept;
  ~GpuLease() { release(); }
  // `gpu`: UUID or index, "" the first visible one, or any name that all users agree on where there
  // is no NVML. Waits up to `timeout_s`; kEnvironment then, naming the process that holds it. A
  // second lease of the same GPU in the same process waits as well.
  static Result<GpuLease> take(const std::string& gpu, double timeout_s);
  bool held() const { return lock_.valid(); }
  void release();

 private:
  Fd lock_;
};

// Where the lock files lie: $KERNELPRO_LEASES, else a folder in /tmp that all users of this machine
// share, else one of this user's own. Made if need be; "" when none can be.
std::string gpu_lease_dir();

}  // namespace kernelpro
