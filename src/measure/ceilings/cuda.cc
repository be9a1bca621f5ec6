// SPDX-License-Identifier: Apache-2.0
// describe_cuda_machine: describes the GPU, with ceilings measured in a child process.
#include <cstdlib>
#include <memory>

#include "base/clock.h"
#include "base/hash.h"
#include "core/machine/machine.h"
#include "machine/gpu_watch.h"
#include "measure/ceilings/ceilings.h"
#include "measure/ceilings/rounds.h"
#include "measure/cuda/link.h"

namespace kernelpro {

namespace {

#if KERNELPRO_HAVE_CUDA

// One file for each driver and choice of GPU.
std::string cuda_cache_file() {
  const Result<std::string> driver = read_file("/sys/module/nvidia/version", 4096);
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  const std::string key =
      hash_hex({"cuda-ceilings-2", driver.value_or("unknown"), visible != nullptr ? visible : ""});
  return ceilings_file(TargetKind::kCuda, key);
}

bool others_on_gpu() {
  const Result<GpuState> state = gpu_state("");
  return state && !state->foreign_pids.empty();
}

Result<MeasureRound> make_measure() {
  KP_ASSIGN(CudaLink started, CudaLink::start(WorkerRole::kCudaCeilings));
  auto link = std::make_shared<CudaLink>(std::move(started));
  return MeasureRound([link]() -> Result<CeilingRound> {
    const bool before = others_on_gpu();
    KP_ASSIGN(Reply reply,
              trusted(link->ask({{"do", "measure"}}, 120), "the measurement of the GPU"));
    std::optional<Machine> machine = machine_from_json(dump_json(reply.json["machine"]));
    if (!machine || machine->arch.empty()) {
      return fail(ErrorKind::kEnvironment, "the GPU did not describe itself",
                  "check it with `kernelpro doctor`");
    }
    const bool others = before || others_on_gpu();
    return CeilingRound{std::move(*machine), 0, !others};
  });
}

#endif

}  // namespace

Result<Machine> describe_cuda_machine([[maybe_unused]] CeilingsWanted wanted) {
#if KERNELPRO_HAVE_CUDA
  return described_machine(cuda_cache_file(), wanted, make_measure, utc_now());
#else
  return fail(ErrorKind::kEnvironment, "this KernelPro was built without the cuda target",
              "install the CUDA toolkit's headers, set CUDA_HOME and build again, or use "
              "--target cpu");
#endif
}

}  // namespace kernelpro
