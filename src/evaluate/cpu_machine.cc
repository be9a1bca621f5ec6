// SPDX-License-Identifier: Apache-2.0
// describe_cpu_machine: what this processor is, with ceilings measured in a child process once a
// day.
#include <unistd.h>

#include <cmath>
#include <cstring>

#include "base/clock.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/subprocess.h"
#include "base/worker_path.h"
#include "core/cpu_protocol.h"
#include "device/cpu.h"
#include "evaluate/evaluator.h"

namespace kernelpro {

namespace {

Result<Ceilings> measure_ceilings(const std::string& worker) {
  Command command;
  command.argv = {worker, "cpu-ceilings"};
  Result<Child> child = Child::start(command);
  if (!child) return tl::unexpected<Error>(child.error());
  const std::optional<Frame> frame = child->receive(60);
  CpuCeilings measured;
  if (!frame || frame->bytes.size() != sizeof measured) {
    const Exit& exit = child->finish();
    return fail(ErrorKind::kEnvironment,
                "the measurement of this machine's ceilings " + exit.describe(command.limits) +
                    (exit.output.empty() ? "" : ": " + exit.output),
                "free some memory and run the command again");
  }
  std::memcpy(&measured, frame->bytes.data(), sizeof measured);
  measured.how[sizeof measured.how - 1] = '\0';
  Ceilings ceilings;
  ceilings.copy_bytes_per_s = measured.copy_bytes_per_s;
  ceilings.fma_flops_per_s = measured.fma_flops_per_s;
  ceilings.how = measured.how;
  return ceilings;
}

// One file for each host, processor and day.
std::string cache_file(const CpuInfo& cpu) {
  char host[256] = {};
  ::gethostname(host, sizeof host - 1);
  const std::string key = hash_hex(
      {"cpu-ceilings-1", host, cpu.name, std::to_string(cpu.threads), utc_now().substr(0, 10)});
  return join(join(cache_dir(), "machines"), "cpu-" + key + ".json");
}

}  // namespace

Result<Machine> describe_cpu_machine() {
  const CpuInfo cpu = read_cpu_info();
  const std::string path = cache_file(cpu);
  if (exists(path)) {
    if (const Result<std::string> text = read_file(path, 1 << 20)) {
      if (std::optional<Machine> machine = machine_from_json(*text)) return *machine;
    }
  }
  const Result<std::string> worker = worker_path();
  if (!worker) return tl::unexpected<Error>(worker.error());
  Result<Ceilings> ceilings = measure_ceilings(*worker);
  if (!ceilings) return tl::unexpected<Error>(ceilings.error());
  Machine machine;
  machine.target = "cpu";
  machine.name =
      cpu.name + ", " + std::to_string(cpu.threads) + (cpu.threads == 1 ? " thread" : " threads");
  machine.parallel_units = cpu.threads;
  machine.arch = cpu.arch;
  machine.l2_bytes = static_cast<double>(cpu.cache_bytes);
  machine.ceilings = std::move(*ceilings);
  // A cache that cannot be written only costs the next run a measurement.
  if (make_dirs(dirname(path))) static_cast<void>(write_file(path, machine_to_json(machine)));
  return machine;
}

}  // namespace kernelpro
