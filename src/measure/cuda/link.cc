// SPDX-License-Identifier: Apache-2.0
#include "measure/cuda/link.h"

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <limits>
#include <system_error>
#include <utility>

#include "base/clock.h"
#include "base/process/processes.h"
#include "base/process/sandbox.h"
#include "base/process/worker_path.h"
#include "base/text.h"

namespace kernelpro {

namespace {
constexpr std::int64_t kHostMemory = 16LL << 30;  // resident; a CUDA process needs about 0.5 GB
constexpr double kPostedTimeout = 60;             // a context on a cold machine takes seconds
constexpr int kStopRounds = 10;
constexpr double kIdleShare = 0.1;      // of one processor: less is only waiting
constexpr double kSilentPeriods = 1.8;  // of computing
constexpr int kMostFiles = 10'000;      // looked at in a process's folder
constexpr int kRefusedStatus = 77;      // measure/worker/cuda/capture_sandbox.h

// When a file below `folder` was last written, on the file system's clock.
std::int64_t newest_change(const std::string& folder) {
  std::int64_t newest = std::numeric_limits<std::int64_t>::min();
  if (folder.empty()) return newest;
  int left = kMostFiles;
  std::error_code error;
  std::filesystem::recursive_directory_iterator at(
      folder, std::filesystem::directory_options::skip_permission_denied, error);
  for (; !error && at != std::filesystem::recursive_directory_iterator() && left > 0; --left) {
    std::error_code gone;
    const auto written = at->last_write_time(gone);
    if (!gone) newest = std::max<std::int64_t>(newest, written.time_since_epoch().count());
    at.increment(error);
  }
  return newest;
}

std::string refused_call(const Exit& exit) {
  // Where the signal is blocked (as by posix_spawn), the OS ends the process outright.
  if (exit.kind == Exit::Kind::kSignalled && exit.code == SIGSYS) return "system-call";
  const std::string mark = "kernelpro: refused: ";
  const std::size_t at = exit.output.rfind(mark);
  if (exit.kind != Exit::Kind::kExited || exit.code != kRefusedStatus || at == std::string::npos) {
    return "";
  }
  const std::string rest = exit.output.substr(at + mark.size());
  return rest.substr(0, rest.find('\n'));
}
}  // namespace

Result<CudaLink> CudaLink::start(WorkerRole role, const std::string& gpu, Queues queues,
                                 const std::vector<std::string>& arguments) {
  KP_ASSIGN(const std::string worker, worker_path());
  Command command;
  command.argv = {worker, worker_role_name(role)};
  command.argv.insert(command.argv.end(), arguments.begin(), arguments.end());
  if (!gpu.empty()) command.env = {"CUDA_VISIBLE_DEVICES=" + gpu};
  const std::string connections = "CUDA_DEVICE_MAX_CONNECTIONS";
  command.unset.push_back(connections);  // whatever the user set: times must not depend on it
  if (queues == Queues::kOne) command.env.push_back(connections + "=1");
  // Where kernels are loaded when they are first used, CUPTI takes them to lie in that order, and
  // places samples of several kernels in each other's code.
  if (role == WorkerRole::kCudaSampler) command.env.push_back("CUDA_MODULE_LOADING=EAGER");
  command.limits.memory_bytes = kHostMemory;
  Result<CudaLink> link = start(std::move(command));
  if (link) link->queues_ = queues;
  // It runs launch plans: no candidate code runs on the CPU.
  if (link && role == WorkerRole::kCudaWorker) link->killed_by_ = Crashed::By::kOutside;
  return link;
}

Result<CudaLink> CudaLink::start(Command command) {
  // Candidates must not see keys and tokens in our environment.
  for (std::string& name : secret_variables()) command.unset.push_back(std::move(name));
  CudaLink link;
  link.limits_ = command.limits;
  link.has_warden_ = command.sandbox && !command.sandbox->alone;
  KP_ASSIGN(link.child_, Child::start(command));
  return link;
}

Answer CudaLink::receive(double timeout_s, const std::function<double()>& patience) {
  const bool last = allowance_ && allowance_->left() < timeout_s;
  if (last) timeout_s = allowance_->left();
  const double start = real_clock().now_s();
  std::optional<Frame> frame = child_.receive(timeout_s, patience);
  if (allowance_) allowance_->spent_s += real_clock().now_s() - start;
  std::optional<Json> json = frame ? parse_json(frame->bytes) : std::nullopt;
  if (json && json->is_object()) {
    const JsonReader r(*json);
    if (r.member("error") != nullptr) {
      const std::string rule = r.text("rule");
      Refusal refusal{r.text("error"), refusal_kind(rule), rule, r.text("next")};
      if (refusal.kind == RefusalKind::kEnvironment && killed_by_ == Crashed::By::kOutside) {
        refusal.by = Crashed::By::kOutside;
      }
      return refusal;
    }
    if (r.flag("ok")) return Reply{std::move(*json), std::move(frame->fds)};
  }
  const Exit& exit = child_.finish();
  limits_.wall_seconds = timeout_s;
  const bool timed_out = exit.kind == Exit::Kind::kTimedOut;
  return Lost{timed_out,
              last && timed_out ? allowance_->limit_s : timeout_s,
              last && timed_out,
              "the process " + exit.describe(limits_),
              clip(exit.output, 4096),
              refused_call(exit),
              exit.from_outside() ? killed_by_ : Crashed::By::kItself};
}

void CudaLink::post(const Json& message, const std::vector<int>& fds) {
  send(message, fds);
  ++posted_;
}

// A dead process is noticed when its answer is awaited.
void CudaLink::send(const Json& message, const std::vector<int>& fds) {
  if (stopped_) {
    for (const int pid : tree()) ::kill(pid, SIGCONT);
    stopped_ = false;
  }
  static_cast<void>(child_.send(dump_json(message), fds));
}

std::vector<int> CudaLink::tree() const {
  std::vector<int> pids = descendants(child_.pid());
  if (!has_warden_) pids.push_back(child_.pid());
  std::sort(pids.begin(), pids.end());
  return pids;
}

void CudaLink::stop() {
  if (!child_.running()) return;
  // Until no new ones turn up: one that still ran could start another.
  std::vector<int> before;
  for (int round = 0; round < kStopRounds; ++round) {
    std::vector<int> now = tree();
    for (const int pid : now) ::kill(pid, SIGSTOP);
    if (now == before) break;
    before = std::move(now);
  }
  stopped_ = true;
}

Answer CudaLink::settle(double timeout_s) {
  Answer answer = Reply{Json::object(), {}};
  while (posted_ > 0) {
    --posted_;
    Answer next = receive(timeout_s);
    if (std::holds_alternative<Reply>(answer)) answer = std::move(next);
    if (std::holds_alternative<Lost>(answer)) break;
  }
  return answer;
}

Answer CudaLink::ask(const Json& message, double timeout_s, const std::vector<int>& fds) {
  if (posted_ > 0) {
    Answer before = settle(std::max(timeout_s, kPostedTimeout));
    if (!std::holds_alternative<Reply>(before)) return before;
  }
  send(message, fds);
  return receive(timeout_s);
}

Answer CudaLink::ask_while_busy(const Json& message, double most_s, double idle_s) {
  if (posted_ > 0) {
    Answer before = settle(kPostedTimeout);
    if (!std::holds_alternative<Reply>(before)) return before;
  }
  std::size_t alone = tree().size();
  send(message, {});
  const double start = real_clock().now_s();
  const auto used = [this] {
    const std::vector<int> pids = tree();
    return processor_seconds({pids.begin(), pids.end()});
  };
  double before = used();
  std::int64_t changed = newest_change(folder_ ? folder_->path() : "");
  double silent_s = 0;  // of its processor's time, without a sign of a compiler
  const auto patience = [&] {
    const double now = used(), left = start + most_s - real_clock().now_s();
    const double computed = std::exchange(before, now);
    const bool busy = now - computed > kIdleShare * idle_s;
    // Processes for a compiler, or files that it writes.
    const std::size_t processes = tree().size();
    const std::int64_t latest = newest_change(folder_ ? folder_->path() : "");
    const bool compiles = processes > alone || latest != changed;
    alone = std::min(alone, processes);
    changed = latest;
    silent_s = compiles ? 0 : silent_s + std::min(now - computed, idle_s);
    return busy && silent_s < kSilentPeriods * idle_s ? std::clamp(left, 0.0, idle_s) : 0;
  };
  Answer answer = receive(std::min(idle_s, most_s), patience);
  if (auto* lost = std::get_if<Lost>(&answer)) lost->seconds = real_clock().now_s() - start;
  return answer;
}

Result<Reply> trusted(Answer answer, const char* who) {
  if (auto* reply = std::get_if<Reply>(&answer)) return std::move(*reply);
  if (const auto* refusal = std::get_if<Refusal>(&answer)) {
    const ErrorKind kind = refusal->kind == RefusalKind::kReference ? ErrorKind::kTask
                           : refusal->kind == RefusalKind::kMemory  ? ErrorKind::kBadInput
                                                                    : ErrorKind::kEnvironment;
    return fail(kind, refusal->text,
                !refusal->next.empty()     ? refusal->next
                : kind == ErrorKind::kTask ? "fix the task's reference.cu"
                                           : "run again; `kernelpro doctor` shows what this GPU "
                                             "allows");
  }
  const Lost& lost = std::get<Lost>(answer);
  return fail(ErrorKind::kEnvironment,
              std::string(who) + ": " + lost.how + (lost.output.empty() ? "" : "\n" + lost.output),
              "run again; if it fails again, check the GPU with nvidia-smi");
}

}  // namespace kernelpro
