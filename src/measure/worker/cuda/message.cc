// SPDX-License-Identifier: Apache-2.0
#include "measure/worker/cuda/message.h"

#include <fcntl.h>

#include "base/process/subprocess.h"

namespace kernelpro {

WorkerChannel::WorkerChannel() : channel_(Fd(kChannelFd)) {
  ::fcntl(kChannelFd, F_SETFD, FD_CLOEXEC);
}

std::optional<WorkerCommand> WorkerChannel::next() {
  Frame frame;
  if (channel_.receive(&frame, -1) != ChannelState::kOk) return std::nullopt;
  std::optional<Json> json = parse_json(frame.bytes);
  if (!json || !json->is_object()) return std::nullopt;
  return WorkerCommand{std::move(*json), std::move(frame.fds)};
}

void WorkerChannel::answer(Json json, const std::vector<int>& fds) {
  json["ok"] = true;
  channel_.send(dump_json(json), fds, 60.0);
}

void WorkerChannel::answer_error(const std::string& text, RefusalKind kind) {
  answer_broken(std::string(refusal_name(kind)), text);
}

void WorkerChannel::answer_error(const Error& error, RefusalKind kind) {
  Json json = {{"error", error.message}, {"next", error.next}};
  if (kind != RefusalKind::kNone) json["rule"] = refusal_name(kind);
  channel_.send(dump_json(json), {}, 60.0);
}

void WorkerChannel::answer_broken(const std::string& rule, const std::string& text) {
  Json json = {{"error", text}};
  if (!rule.empty()) json["rule"] = rule;
  channel_.send(dump_json(json), {}, 60.0);
}

}  // namespace kernelpro
