// SPDX-License-Identifier: Apache-2.0
// describe_cpu_machine: describes this processor, with ceilings measured in a child process.
#include "machine/cpu.h"

#include <unistd.h>

#include <cstring>
#include <memory>

#include "base/clock.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/process/subprocess.h"
#include "base/process/worker_path.h"
#include "base/text.h"
#include "core/plan/cpu_protocol.h"
#include "core/plan/worker_role.h"
#include "core/task/task.h"
#include "machine/host_load.h"
#include "measure/ceilings/ceilings.h"
#include "measure/ceilings/rounds.h"

namespace kernelpro {

namespace {

constexpr double kRoundTimeout = 60;

// One process that measures again on every request.
class CeilingsProcess {
 public:
  static Result<std::shared_ptr<CeilingsProcess>> start(const std::string& worker) {
    auto process = std::make_shared<CeilingsProcess>();
    process->command_.argv = {worker, worker_role_name(WorkerRole::kCpuCeilings)};
    KP_ASSIGN(process->child_, Child::start(process->command_));
    return process;
  }

  Result<CpuCeilings> measure() {
    child_.send("measure");  // a dead worker is noticed below
    const std::optional<Frame> frame = child_.receive(kRoundTimeout);
    CpuCeilings measured;
    if (!frame || frame->bytes.size() != sizeof measured) {
      const Exit& exit = child_.finish();
      return fail(ErrorKind::kEnvironment,
                  "the measurement of this machine's ceilings " + exit.describe(command_.limits) +
                      (exit.output.empty() ? "" : ": " + exit.output),
                  "free some memory and run the command again");
    }
    std::memcpy(&measured, frame->bytes.data(), sizeof measured);
    measured.how[sizeof measured.how - 1] = '\0';
    return measured;
  }
  pid_t pid() const { return child_.pid(); }

 private:
  Command command_;
  Child child_;
};

Machine named(const CpuInfo& cpu) {
  Machine machine;
  machine.target = target_name(TargetKind::kCpu);
  machine.name = cpu.name + ", " + how_many(cpu.threads, "thread");
  machine.parallel_units = cpu.threads;
  machine.arch = cpu.arch;
  machine.l2_bytes = static_cast<double>(cpu.cache_bytes);
  return machine;
}

Result<MeasureRound> make_measure(const CpuInfo& cpu) {
  KP_ASSIGN(const std::string worker, worker_path());
  auto process = CeilingsProcess::start(worker);
  if (!process) return tl::unexpected<Error>(std::move(process.error()));
  return MeasureRound([cpu, process = *process]() -> Result<CeilingRound> {
    LoadMeter meter;
    meter.begin();
    KP_ASSIGN(const CpuCeilings measured, process->measure());
    CeilingRound round;
    round.machine = named(cpu);
    round.machine.ceilings.copy_bytes_per_s = measured.copy_bytes_per_s;
    round.machine.ceilings.fma_flops_per_s = measured.fma_flops_per_s;
    round.machine.ceilings.how = measured.how;
    round.foreign = meter.since_begin({process->pid()}).foreign;
    round.quiet = round.foreign < kBusyShare;
    return round;
  });
}

// One file for each host and processor.
std::string cache_file(const CpuInfo& cpu) {
  char host[256] = {};
  ::gethostname(host, sizeof host - 1);
  const std::string key = hash_hex({"cpu-ceilings-3", host, cpu.name, std::to_string(cpu.threads)});
  return ceilings_file(TargetKind::kCpu, key);
}

}  // namespace

Result<Machine> describe_cpu_machine(CeilingsWanted wanted) {
  const CpuInfo cpu = read_cpu_info();
  KP_ASSIGN(Machine machine,
            described_machine(
                cache_file(cpu), wanted, [&] { return make_measure(cpu); }, utc_now()));
  // Not in files of earlier versions.
  machine.instruction_sets = cpu.instruction_sets;
  machine.caches = cpu.caches;
  return machine;
}

}  // namespace kernelpro
