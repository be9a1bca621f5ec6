// SPDX-License-Identifier: Apache-2.0
// The cases that a supervisor has opened in this process, and the judge's memory behind their
// addresses: the verbs "open" and "memory" (core/plan/protocol.h), shared by the roles that run
// plans. One thread, current context. For .cc files only (JSON).
#pragma once

#if KERNELPRO_HAVE_CUDA

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/plan/launch_plan.h"
#include "machine/driver/cuda_driver.h"
#include "measure/worker/cuda/memory.h"
#include "measure/worker/cuda/message.h"

namespace kernelpro {

struct OpenCase {
  std::string name;
  AddressLayout layout;
  std::vector<bool> inputs;  // by slot: the candidate only reads it; empty if not given
  std::vector<std::vector<std::shared_ptr<PhysicalMemory>>> sets;  // by set, by slot
};

class OpenCases {
 public:
  OpenCases(const CudaDriver& cu, CUdevice device) : cu_(cu), device_(device) {}

  // Forgets all previous cases; anything built over a case's addresses must be gone already.
  Result<Json> open(const WorkerCommand& command);
  Result<Json> memory(const WorkerCommand& command);

  // The case that the command names.
  Result<const OpenCase*> of(const WorkerCommand& command) const;
  // Maps a set's memory at the case's addresses, inputs read-only where the driver can do that and
  // the supervisor did not ask for the contrary; only differences are remapped.
  Result<void> bind(const OpenCase& c, std::int64_t set);
  // Whether memory is mapped at all of the case's addresses.
  bool bound(const OpenCase& c) const;

 private:
  Result<void> map(const OpenCase& c, std::size_t slot, const PhysicalMemory& memory);

  const CudaDriver& cu_;
  CUdevice device_;
  std::map<std::string, OpenCase> cases_;  // its memory is freed after the range that maps it
  AddressRange range_;
  bool protect_ = true;  // inputs; false also once the driver refused
  const OpenCase* bound_case_ = nullptr;
  std::vector<const PhysicalMemory*> bound_;  // by slot, what is mapped
};

}  // namespace kernelpro

#endif
