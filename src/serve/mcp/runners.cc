// SPDX-License-Identifier: Apache-2.0
#include "serve/mcp/runners.h"

#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "base/files.h"
#include "base/text.h"
#include "run/choices.h"
#include "run/store/store.h"

namespace kernelpro {

namespace {

constexpr int kStartTicks = 1200;  // of 50 ms
constexpr std::size_t kNamed = 12;
constexpr std::size_t kSaidLines = 12;

std::string log_of(const std::string& path) { return path + ".log"; }

}  // namespace

bool Runners::running(const std::string& path) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = pids_.find(path);
  if (found == pids_.end() || found->second == 0) return false;
  if (::waitpid(found->second, nullptr, WNOHANG) == 0) return true;
  found->second = 0;
  return false;
}

Result<void> Runners::stop(const std::string& path) {
  if (run_holder(path) || !running(path)) return stop_run(path);
  const std::lock_guard<std::mutex> lock(mutex_);
  // Nobody else waits for it, so its number is its own until then.
  if (const pid_t pid = pids_[path]; pid != 0) ::kill(pid, SIGINT);
  return {};
}

Result<void> Runners::check_idle() {
  std::vector<std::string> started;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const auto& [path, pid] : pids_) {
      if (pid != 0) started.push_back(path);
    }
  }
  for (const std::string& path : started) {
    if (!running(path)) continue;
    return fail(ErrorKind::kBusy,
                "the search " + basename(path) + " runs here, and would disturb the times",
                "follow it until it has ended, or stop it");
  }
  return {};
}

Result<Runners::Started> Runners::start(const std::string& name, std::vector<std::string> arguments,
                                        const std::function<bool()>& cancelled) {
  KP_TRY(check_idle());
  const std::string path = new_run_directory(name, folder_);
  arguments.insert(arguments.end(), {"--run", path});
  auto pid = start_runner(arguments, log_of(path));
  if (!pid) {
    drop_run_directory(path);
    return tl::unexpected<Error>(std::move(pid.error()));
  }
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    pids_[path] = *pid;
    last_ = path;
  }
  for (int i = 0; i < kStartTicks && !is_run(path); ++i) {
    if (!running(path)) {
      const std::string text = said(path, kSaidLines);
      drop_run_directory(path);
      return fail(ErrorKind::kBadInput, "the search ended before it began:\n" + text,
                  "change what it complains about, and call again");
    }
    if (cancelled()) ::kill(*pid, SIGINT);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  return Started{path, is_run(path)};
}

Result<FoundRun> Runners::find(const std::string& name) {
  const std::vector<FoundRun> runs = find_runs(folder_).runs;
  std::string wanted = name;
  if (wanted.empty()) {
    const std::lock_guard<std::mutex> lock(mutex_);
    wanted = last_.empty() ? "" : run_address(last_);
  }
  if (wanted.empty() && !runs.empty()) return runs.front();
  const auto meant = [&](const FoundRun& each) {
    return each.id == wanted || each.name == wanted || basename(each.name) == wanted ||
           absolute(each.path) == absolute(wanted);
  };
  for (const FoundRun& each : runs) {
    if (meant(each)) return each;
  }
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const auto& [path, pid] : pids_) {
      const FoundRun each{run_address(path), basename(path), path};
      if (meant(each)) return each;
    }
  }
  std::vector<std::string> names;
  for (const FoundRun& each : runs) {
    if (names.size() < kNamed) names.push_back(each.name);
  }
  return fail(ErrorKind::kBadInput,
              wanted.empty() ? "there is no run yet in " + folder_
                             : "there is no run " + clip(printable(wanted), 200),
              names.empty() ? "start one with optimize, or evaluate a kernel"
                            : "runs are " + join_text(names, ", "));
}

std::string Runners::said(const std::string& path, std::size_t count) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!pids_.contains(path)) return "";
  }
  std::vector<std::string> all = lines(read_file(log_of(path), 16 << 20).value_or(""));
  std::erase_if(all, [](const std::string& line) { return trim(line).empty(); });
  if (all.size() > count) all.erase(all.begin(), all.end() - static_cast<std::ptrdiff_t>(count));
  return printable(join_text(all, "\n"));
}

}  // namespace kernelpro
