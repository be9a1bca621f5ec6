// SPDX-License-Identifier: Apache-2.0
#include "measure/ceilings/rounds.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <mutex>
#include <system_error>
#include <utility>
#include <vector>

#include "base/files.h"
#include "measure/ceilings/ceilings.h"

namespace kernelpro {

namespace {

std::array<double, 3> rates(const Ceilings& c) {
  return {c.copy_bytes_per_s, c.fma_flops_per_s, c.tensor_flops_per_s};
}

// Whether the two highest values of each rate agree.
bool agree(const std::vector<Ceilings>& all, double agreement) {
  if (all.size() < 2) return false;
  for (std::size_t rate = 0; rate < 3; ++rate) {
    double first = 0, second = 0;
    for (const Ceilings& each : all) {
      const double value = rates(each)[rate];
      second = std::max(second, std::min(first, value));
      first = std::max(first, value);
    }
    if (second < (1 - agreement) * first) return false;
  }
  return true;
}

// Results of this process, by cache file: a command needs them several times.
struct Memo {
  std::mutex mutex;
  std::map<std::string, Machine> machines;
};
Memo& memo() {
  static Memo all;
  return all;
}

std::string cache_folder() { return join(cache_dir(), "machines"); }
std::string prefix_of(TargetKind target) { return std::string(target_name(target)) + "-"; }

std::optional<Machine> read_machine(const std::string& path) {
  if (!exists(path)) return std::nullopt;
  const Result<std::string> text = read_file(path, 1 << 20);
  return text ? machine_from_json(*text) : std::nullopt;
}

}  // namespace

Result<Machine> best_of_rounds(const MeasureRound& measure, const RoundsPlan& plan) {
  std::optional<Machine> best;
  std::vector<Ceilings> quiet;
  int busy = 0;
  for (;;) {
    Result<CeilingRound> round = measure();
    if (!round) {
      if (best) return *best;
      return tl::unexpected<Error>(std::move(round.error()));
    }
    Ceilings& now = round->machine.ceilings;
    now.quiet = round->quiet;
    now.foreign = round->foreign;
    now.rounds = 1;
    if (now.quiet) {
      quiet.push_back(now);
    } else {
      ++busy;
    }
    const Ceilings so_far = best ? better_of(best->ceilings, now) : now;
    best = std::move(round->machine);
    best->ceilings = so_far;
    if (agree(quiet, plan.agreement) || busy >= plan.most_busy ||
        static_cast<int>(quiet.size()) >= plan.most_quiet) {
      return *best;
    }
  }
}

std::string ceilings_file(TargetKind target, const std::string& key) {
  return join(cache_folder(), prefix_of(target) + key + ".json");
}

std::optional<Machine> remembered_machine(TargetKind target, const std::string& name) {
  namespace fs = std::filesystem;
  std::optional<Machine> found;
  fs::file_time_type latest{};
  for (const std::string& file : list_dir(cache_folder())) {
    if (!file.starts_with(prefix_of(target))) continue;
    const std::string path = join(cache_folder(), file);
    std::error_code error;
    const auto time = fs::last_write_time(path, error);
    if (error || (found && time <= latest)) continue;
    auto machine = read_machine(path);
    if (!machine || machine->name != name || machine->ceilings.copy_bytes_per_s <= 0) continue;
    found = std::move(machine);
    latest = time;
  }
  return found;
}

bool still_good(const Ceilings& ceilings, const std::string& now) {
  if (ceilings.rounds <= 0) return false;
  if (ceilings.quiet) return ceilings.measured_at.substr(0, 10) == now.substr(0, 10);
  const std::optional<std::int64_t> from = utc_seconds(ceilings.measured_at);
  const std::optional<std::int64_t> to = utc_seconds(now);
  return from && to && *to >= *from && *to - *from < kBusyCeilingsLast;
}

Result<Machine> described_machine(const std::string& path, CeilingsWanted wanted,
                                  const std::function<Result<MeasureRound>()>& measurer,
                                  const std::string& now) {
  const std::lock_guard<std::mutex> lock(memo().mutex);
  std::optional<Machine> known = read_machine(path);
  const auto earlier = memo().machines.find(path);
  if (wanted == CeilingsWanted::kAny) {
    if (known && still_good(known->ceilings, now)) return *known;
    if (earlier != memo().machines.end()) return earlier->second;
  }
  if (!known && earlier != memo().machines.end()) known = earlier->second;
  KP_ASSIGN(const MeasureRound measure, measurer());
  KP_ASSIGN(Machine machine, best_of_rounds(measure, known ? kImprovePlan : RoundsPlan()));
  machine.ceilings.measured_at = now;
  if (known) machine.ceilings = better_of(machine.ceilings, known->ceilings);
  // An unwritable cache only costs the next command a measurement.
  if (make_dirs(dirname(path))) static_cast<void>(write_file(path, machine_to_json(machine)));
  memo().machines[path] = machine;
  return machine;
}

void measure_ceilings(TargetKind target) {
  static_cast<void>(target == TargetKind::kCuda ? describe_cuda_machine() : describe_cpu_machine());
}

}  // namespace kernelpro
