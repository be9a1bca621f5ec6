// SPDX-License-Identifier: Apache-2.0
// One user per GPU at a time, across processes. Hold the lease to measure, not to compile or to
// wait for a model. It is a lock file per GPU (flock), so a killed holder leaves nothing behind. A
// second file (.gate) is held by whoever is next: a process that releases the GPU and wants it
// again queues behind it. Among several that wait, the order is not fixed. Children do not inherit
// it. Leases arbitrate between processes; within one, take it in one place.
#pragma once

#include <string>
#include <utility>

#include "base/error.h"
#include "base/files.h"

namespace kernelpro {

class GpuLease {
 public:
  GpuLease() = default;
  GpuLease(GpuLease&&) noexcept = default;
  GpuLease& operator=(GpuLease&& other) noexcept;
  ~GpuLease() { release(); }
  // `gpu`: UUID or index, "" for the first visible GPU, or without NVML any name that all users
  // agree on. Waits up to `timeout_s`, then fails with kEnvironment, naming the process that holds
  // it. A second lease of the same GPU in the same process waits too.
  static Result<GpuLease> take(const std::string& gpu, double timeout_s);
  bool held() const { return lock_.valid(); }
  void release();

 private:
  explicit GpuLease(Fd file) : lock_(std::move(file)) {}
  Fd lock_;
};

// Folder of the lock files: $KERNELPRO_LEASES, else a folder in /tmp shared by all users of this
// machine, else one for this user. Created if needed; "" if none can be.
std::string gpu_lease_dir();

}  // namespace kernelpro
