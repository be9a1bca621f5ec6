// SPDX-License-Identifier: Apache-2.0
// The supervisor's end of the channel to one cuda worker process. For .cc files only (JSON).
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "base/json.h"
#include "base/process/subprocess.h"
#include "core/evaluation/evaluation.h"
#include "core/plan/refusal.h"
#include "core/plan/worker_role.h"

namespace kernelpro {

struct Reply {
  Json json;
  std::vector<Fd> fds;
};
// The process reported that it could not comply.
struct Refusal {
  std::string text;
  RefusalKind kind = RefusalKind::kNone;
  std::string rule;  // its name: of a rule that the candidate broke, what the verdict says
  std::string next;  // what to do, if the process knows
  // kOutside: the GPU's fault, said by a process that no candidate could make say so.
  Crashed::By by = Crashed::By::kItself;
};
// The process is gone: it crashed, hung and was killed, or broke a rule of its sandbox.
struct Lost {
  bool timed_out = false;
  double seconds = 0;
  bool used_up = false;  // timed out: not in this answer alone, but in all together (Allowance)
  std::string how;       // one sentence
  std::string output;    // what it printed
  std::string refused;   // name of a refused system call: "fork", "socket" ...
  Crashed::By by = Crashed::By::kItself;
};
using Answer = std::variant<Reply, Refusal, Lost>;

// Hardware queues of a process's context (CUDA_DEVICE_MAX_CONNECTIONS). A context with one queue is
// created and destroyed twice as fast, and the driver does that serially for all GPUs of a host
// (results/contexts.md). But in such a context the kernels of a call never run concurrently.
enum class Queues { kDefault, kOne };

// A folder for one process, in which no other can read or write. Removed with the value.
class PrivateFolder {
 public:
  // A new one in `place`.
  static Result<std::shared_ptr<PrivateFolder>> make(const std::string& place);
  ~PrivateFolder();
  PrivateFolder(const PrivateFolder&) = delete;
  PrivateFolder& operator=(const PrivateFolder&) = delete;
  const std::string& path() const { return path_; }
  // The path of a copy of this file in it, made before any code of a candidate runs: later calls
  // write nothing.
  Result<std::string> copy_of(const std::string& file);

 private:
  explicit PrivateFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
  std::string file_, copy_;  // the only file that was copied, and where to
};

// The time that a candidate may have processes busy, in all calls together. Limits of single calls
// do not add up to one: a kernel that is slow in each call but the first stays below all of them.
struct Allowance {
  double limit_s = 0, spent_s = 0;
  double left() const { return std::max(limit_s - spent_s, 0.0); }
};

inline constexpr double kIdleSeconds = 30;
inline constexpr double kStartTimeout = 120;  // seconds until a process has its context, at most

// One thread at a time. The process ends with the object.
class CudaLink {
 public:
  // Starts a role of kernelpro-worker with `arguments`. `gpu`: UUID or index; "" leaves the choice
  // to the environment. Returns at once: the process creates its context meanwhile.
  static Result<CudaLink> start(WorkerRole role, const std::string& gpu = "",
                                Queues queues = Queues::kDefault,
                                const std::vector<std::string>& arguments = {});
  static Result<CudaLink> start(Command command);
  Queues queues() const { return queues_; }
  // Where its cases' buffers lie (core/plan/launch_plan.h, `placed`); 0 before it has any.
  std::uint64_t place() const { return place_; }
  void set_place(std::uint64_t place) { place_ = place; }
  // A folder that goes with the process; null: it has none.
  const std::shared_ptr<PrivateFolder>& folder() const { return folder_; }
  void own(std::shared_ptr<PrivateFolder> folder) { folder_ = std::move(folder); }
  // From now on all waiting for its answers counts. Several processes may share it; null: no limit.
  void limit_by(std::shared_ptr<Allowance> allowance) { allowance_ = std::move(allowance); }
  bool running() const { return child_.running(); }
  Answer ask(const Json& message, double timeout_s, const std::vector<int>& fds = {});
  // The same for a process that may have to compile: for at most `most_s`, and only as long as it,
  // with all that it started, uses the processor. One that only waits is timed out after `idle_s`,
  // one that computes without a sign of a compiler (further processes, new files in its folder)
  // after nearly twice that.
  Answer ask_while_busy(const Json& message, double most_s, double idle_s = kIdleSeconds);
  // Sends without waiting. The next `ask` first awaits the answer, and returns it instead of its
  // own if it is not "ok".
  void post(const Json& message, const std::vector<int>& fds = {});
  // Waits for the answers to everything posted; returns the first bad one, or the last.
  Answer settle(double timeout_s);
  // Stops the process and all that it started, until something is sent to it.
  void stop();

 private:
  Answer receive(double timeout_s, const std::function<double()>& patience = {});
  void send(const Json& message, const std::vector<int>& fds);
  std::vector<int> tree() const;
  std::shared_ptr<PrivateFolder> folder_;  // outlives the process
  Child child_;
  bool has_warden_ = false;  // the child itself is not the process
  bool stopped_ = false;
  Limits limits_;
  Queues queues_ = Queues::kDefault;
  // How to read a signal from outside: host code and Python may send it to themselves.
  Crashed::By killed_by_ = Crashed::By::kPerhapsOutside;
  int posted_ = 0;
  std::uint64_t place_ = 0;
  std::shared_ptr<Allowance> allowance_;
};

// For processes that run no candidate code: any failure is the machine's.
Result<Reply> trusted(Answer answer, const char* who);

// Most descriptors that can go with one frame.
inline constexpr std::size_t kFdsPerFrame = 60;

}  // namespace kernelpro
