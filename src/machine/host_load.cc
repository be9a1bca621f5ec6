// SPDX-License-Identifier: Apache-2.0
#include "machine/host_load.h"

#include <dirent.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <sstream>
#include <string>

#include "base/clock.h"
#include "machine/cpu.h"

namespace kernelpro {

namespace {

double tick_seconds() {
  static const double seconds = 1.0 / static_cast<double>(std::max(1L, ::sysconf(_SC_CLK_TCK)));
  return seconds;
}

double seconds_of(const timespec& t) {
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

cpu_set_t own_processors() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  if (::sched_getaffinity(0, sizeof mask, &mask) != 0) std::memset(&mask, 0xff, sizeof mask);
  return mask;
}

bool may_run_there(pid_t pid, const cpu_set_t& mask) {
  cpu_set_t theirs, both;
  CPU_ZERO(&theirs);
  if (::sched_getaffinity(pid, sizeof theirs, &theirs) != 0) return true;
  CPU_AND(&both, &theirs, &mask);
  return CPU_COUNT(&both) > 0;
}

bool may_use(const cpu_set_t& mask, const std::string& name) {  // "cpu3"
  const long cpu = std::strtol(name.c_str() + 3, nullptr, 10);
  return cpu >= CPU_SETSIZE || CPU_ISSET(static_cast<std::size_t>(cpu), &mask);
}

// Sums the per-processor lines "cpu3 user nice system idle iowait irq softirq steal ...".
void read_ticks(const cpu_set_t& mask, LoadReading* reading) {
  std::ifstream file("/proc/stat");
  for (std::string line; std::getline(file, line) && line.starts_with("cpu");) {
    std::istringstream fields(line);
    std::string name;
    double user = 0, nice = 0, system = 0, idle = 0, iowait = 0, irq = 0, softirq = 0, steal = 0;
    fields >> name >> user >> nice >> system >> idle >> iowait >> irq >> softirq >> steal;
    if (name == "cpu" || !may_use(mask, name)) continue;
    reading->busy_s += (user + nice + system + irq + softirq + steal) * tick_seconds();
    reading->stolen_s += steal * tick_seconds();
  }
}

LoadReading read_load(const cpu_set_t& mask) {
  LoadReading reading;
  read_ticks(mask, &reading);
  reading.process_s = process_times(mask);
  reading.wall_s = real_clock().now_s();
  return reading;
}

}  // namespace

std::map<pid_t, double> process_times(const cpu_set_t& processors) {
  const bool some = CPU_COUNT(&processors) < ::sysconf(_SC_NPROCESSORS_ONLN);
  std::map<pid_t, double> times;
  DIR* dir = ::opendir("/proc");
  if (dir == nullptr) return times;
  while (const dirent* entry = ::readdir(dir)) {
    const pid_t pid = static_cast<pid_t>(std::strtol(entry->d_name, nullptr, 10));
    clockid_t clock = 0;
    timespec time{};
    if (pid > 0 && ::clock_getcpuclockid(pid, &clock) == 0 && ::clock_gettime(clock, &time) == 0 &&
        (!some || may_run_there(pid, processors))) {
      times.emplace(pid, seconds_of(time));
    }
  }
  ::closedir(dir);
  return times;
}

HostLoad load_between(const LoadReading& from, const LoadReading& to,
                      const std::vector<pid_t>& ours, int threads, double tick_s) {
  double own = 0, others = 0;
  for (const auto& [pid, seconds] : to.process_s) {
    const auto before = from.process_s.find(pid);
    // With a reused pid, the difference would be negative.
    const double used = before == from.process_s.end() || seconds < before->second
                            ? seconds
                            : seconds - before->second;
    const bool is_ours = std::find(ours.begin(), ours.end(), pid) != ours.end();
    (is_ours ? own : others) += used;
  }
  others += to.stolen_s - from.stolen_s;
  const double by_ticks = to.busy_s - from.busy_s - own - tick_s;
  HostLoad load;
  load.wall_s = to.wall_s - from.wall_s;
  const double capacity = load.wall_s * std::max(1, threads);
  if (capacity > 0) load.foreign = std::clamp(std::max(others, by_ticks) / capacity, 0.0, 1.0);
  return load;
}

LoadMeter::LoadMeter() : processors_(own_processors()), threads_(read_cpu_info().threads) {
  begin();
}

void LoadMeter::begin() { from_ = read_load(processors_); }

HostLoad LoadMeter::since_begin(const std::vector<pid_t>& ours) const {
  std::vector<pid_t> all = ours;
  all.push_back(::getpid());
  // Each processor's counters are off by up to two ticks.
  return load_between(from_, read_load(processors_), all, threads_, 2 * threads_ * tick_seconds());
}

}  // namespace kernelpro
