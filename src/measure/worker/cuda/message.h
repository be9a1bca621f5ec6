// SPDX-License-Identifier: Apache-2.0
// The worker's end of the channel for the cuda roles: receive a command, answer it. For .cc files
// only (JSON).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "base/process/channel.h"
#include "core/plan/refusal.h"

namespace kernelpro {

struct WorkerCommand {
  Json json;
  std::vector<Fd> fds;
  std::string verb() const { return JsonReader(json).text("do"); }
  std::string text(const char* name) const { return JsonReader(json).text(name); }
  std::int64_t integer(const char* name) const { return JsonReader(json).integer(name); }
  std::uint64_t natural(const char* name) const { return JsonReader(json).natural(name); }
};

class WorkerChannel {
 public:
  WorkerChannel();  // descriptor 3
  // The next command; nullopt when the supervisor is gone or sends garbage: then exit.
  std::optional<WorkerCommand> next();
  void answer(Json json, const std::vector<int>& fds = {});
  void answer_error(const std::string& text, RefusalKind kind = RefusalKind::kNone);
  void answer_error(const Error& error, RefusalKind kind = RefusalKind::kNone);
  // The candidate broke a rule of this name.
  void answer_broken(const std::string& rule, const std::string& text);

 private:
  Channel channel_;
};

}  // namespace kernelpro
