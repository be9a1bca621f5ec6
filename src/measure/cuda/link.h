// SPDX-License-Identifier: Apache-2.0
// The supervisor's end of a conversation with one cuda worker process. For .cc files only (JSON).
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "base/process/subprocess.h"
#include "core/evaluation.h"
#include "core/json.h"

namespace kernelpro {

struct Reply {
  Json json;
  std::vector<Fd> fds;
};
// The process answered that it could not.
struct Refusal {
  std::string text;
  std::string rule;  // "" unless a rule was broken
  std::string next;  // what to do, where the process knows
};
// The process is gone: it crashed, hung and was ended, or broke a rule of its sandbox.
struct Lost {
  bool timed_out = false;
  double seconds = 0;
  std::string how;      // one sentence
  std::string output;   // what it printed
  std::string refused;  // name of a refused system call: "fork", "socket" ...
  Crashed::By by = Crashed::By::kItself;
};
using Answer = std::variant<Reply, Refusal, Lost>;

// Hardware queues of a process's context (CUDA_DEVICE_MAX_CONNECTIONS). Contexts with one are made
// and given back twice as fast, and the driver does that one after the other, on all GPUs of a host
// together (results/contexts.md). But in it, kernels of a call never run side by side.
enum class Queues { kDefault, kOne };

// One thread at a time. The process ends with the object.
class CudaLink {
 public:
  // A role of kernelpro-worker. `gpu`: UUID or index; "" leaves the choice to the environment.
  // `arguments`: of the role. Returns at once: the process makes its context meanwhile.
  static Result<CudaLink> start(const std::string& role, const std::string& gpu = "",
                                Queues queues = Queues::kDefault,
                                const std::vector<std::string>& arguments = {});
  static Result<CudaLink> start(Command command);
  Queues queues() const { return queues_; }
  bool running() const { return child_.running(); }
  Answer ask(const Json& message, double timeout_s, const std::vector<int>& fds = {});
  // Sends ahead, without waiting. The answer is awaited before the next `ask`, which gives it
  // instead of its own if it is not "ok".
  void post(const Json& message, const std::vector<int>& fds = {});
  // Waits for the answers of everything that was posted; the first bad one, or the last.
  Answer settle(double timeout_s);

 private:
  Answer receive(double timeout_s);
  Child child_;
  Limits limits_;
  Queues queues_ = Queues::kDefault;
  // What a signal from outside means: host code and Python may send it to themselves.
  Crashed::By killed_by_ = Crashed::By::kPerhapsOutside;
  int posted_ = 0;
};

// For processes that run nothing of a candidate's: any failure is the machine's.
Result<Reply> trusted(Answer answer, const char* who);

// Most descriptors that go with one frame.
inline constexpr std::size_t kFdsPerFrame = 60;

}  // namespace kernelpro
