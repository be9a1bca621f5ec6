// SPDX-License-Identifier: Apache-2.0
// The supervisor's end of a conversation with one cuda worker process. For .cc files only (JSON).
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "base/subprocess.h"
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
};
using Answer = std::variant<Reply, Refusal, Lost>;

// One thread at a time. The process ends with the object.
class CudaLink {
 public:
  static Result<CudaLink> start(const std::string& role);
  bool running() const { return child_.running(); }
  Answer ask(const Json& message, double timeout_s, const std::vector<int>& fds = {});

 private:
  Child child_;
  Limits limits_;
};

// For processes that run nothing of a candidate's: any failure is the machine's.
Result<Reply> trusted(Answer answer, const char* who);

}  // namespace kernelpro
