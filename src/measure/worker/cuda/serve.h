// SPDX-License-Identifier: Apache-2.0
// The life of a worker that keeps a CUDA context: it answers commands until its supervisor is gone.
// For .cc files only (JSON).
#pragma once

#if KERNELPRO_HAVE_CUDA

#include <optional>

#include "machine/driver/cuda_driver.h"
#include "measure/worker/cuda/kernels.h"
#include "measure/worker/cuda/message.h"

namespace kernelpro {

// Where something is missing, every command is answered with that, as `refusal`. Role has
//   Role(WorkerChannel*, const CudaDriver&, const CudaContext&, TrustedKernels*),
//   Result<void> start(), and void serve(WorkerCommand&), which answers.
template <class Role>
int serve_commands(RefusalKind refusal = RefusalKind::kNone, Result<void> (*needs)() = nullptr) {
  WorkerChannel channel;
  std::optional<CudaContext> context;
  std::optional<TrustedKernels> kernels;
  std::optional<Role> role;
  const auto start = [&]() -> Result<void> {
    if (needs != nullptr) {
      KP_TRY(needs());
    }
    KP_ASSIGN(context, CudaContext::open());
    const CudaDriver& cu = **cuda_driver();
    KP_ASSIGN(kernels, TrustedKernels::load(cu, *context));
    return role.emplace(&channel, cu, *context, &*kernels).start();
  };
  const Result<void> started = start();
  if (!started) {  // its memory may be wanted elsewhere, as long as it answers
    role.reset();
    kernels.reset();
    context.reset();
  }
  while (std::optional<WorkerCommand> command = channel.next()) {
    if (started) {
      role->serve(*command);
    } else {
      channel.answer_error(started.error(), refusal);
    }
  }
  return 0;
}

// The same for a role that this build lacks.
inline int refuse_commands(const Error& why, RefusalKind refusal) {
  WorkerChannel channel;
  while (channel.next()) channel.answer_error(why, refusal);
  return 0;
}
inline Error no_cupti() {
  return {ErrorKind::kEnvironment, "this build has no CUPTI",
          "install the CUDA toolkit with CUPTI's headers and build again"};
}

}  // namespace kernelpro

#endif
