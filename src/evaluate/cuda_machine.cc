// SPDX-License-Identifier: Apache-2.0
// describe_cuda_machine: what the GPU is, with ceilings measured in a child process once a day.
#include <cstdlib>

#include "base/clock.h"
#include "base/hash.h"
#include "core/machine.h"
#include "evaluate/cuda_link.h"
#include "evaluate/evaluator.h"

namespace kernelpro {

namespace {

// One file for each driver, choice of GPU and day.
std::string cuda_cache_file() {
  const Result<std::string> driver = read_file("/sys/module/nvidia/version", 4096);
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  const std::string key = hash_hex({"cuda-ceilings-1", driver.value_or("unknown"),
                                    visible != nullptr ? visible : "", utc_now().substr(0, 10)});
  return join(join(cache_dir(), "machines"), "cuda-" + key + ".json");
}

}  // namespace

Result<Machine> describe_cuda_machine() {
#if !KERNELPRO_HAVE_CUDA
  return fail(ErrorKind::kEnvironment, "this KernelPro was built without the cuda target",
              "install the CUDA toolkit's headers, set CUDA_HOME and build again, or use "
              "--target cpu");
#endif
  const std::string path = cuda_cache_file();
  if (exists(path)) {
    if (const Result<std::string> text = read_file(path, 1 << 20)) {
      if (std::optional<Machine> machine = machine_from_json(*text)) return *machine;
    }
  }
  Result<CudaLink> link = CudaLink::start("cuda-ceilings");
  if (!link) return tl::unexpected<Error>(link.error());
  Result<Reply> reply = trusted(link->ask({{"do", "measure"}}, 120), "the measurement of the GPU");
  if (!reply) return tl::unexpected<Error>(reply.error());
  std::optional<Machine> machine = machine_from_json(dump_json(reply->json["machine"]));
  if (!machine || machine->arch.empty()) {
    return fail(ErrorKind::kEnvironment, "the GPU did not describe itself",
                "check it with `kernelpro doctor`");
  }
  // A cache that cannot be written only costs the next run a measurement.
  if (make_dirs(dirname(path))) static_cast<void>(write_file(path, machine_to_json(*machine)));
  return *machine;
}

}  // namespace kernelpro
