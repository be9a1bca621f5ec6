// SPDX-License-Identifier: Apache-2.0
#include "evaluate/cuda_link.h"

#include <csignal>

#include "base/text.h"
#include "base/worker_path.h"

namespace kernelpro {

namespace {
constexpr std::int64_t kHostMemory = 16LL << 30;  // resident; a CUDA process needs about 0.5 GB
constexpr int kRefusedStatus = 77;                // worker/cuda/capture_sandbox.h

std::string refused_call(const Exit& exit) {
  // Where the signal is blocked (posix_spawn does that) the kernel ends the process outright.
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

Result<CudaLink> CudaLink::start(const std::string& role) {
  const Result<std::string> worker = worker_path();
  if (!worker) return tl::unexpected<Error>(worker.error());
  Command command;
  command.argv = {*worker, role};
  command.limits.memory_bytes = kHostMemory;
  CudaLink link;
  link.limits_ = command.limits;
  Result<Child> child = Child::start(command);
  if (!child) return tl::unexpected<Error>(child.error());
  link.child_ = std::move(*child);
  return link;
}

Answer CudaLink::ask(const Json& message, double timeout_s, const std::vector<int>& fds) {
  if (child_.send(dump_json(message), fds)) {
    std::optional<Frame> frame = child_.receive(timeout_s);
    std::optional<Json> json = frame ? parse_json(frame->bytes) : std::nullopt;
    if (json && json->is_object()) {
      const JsonReader r(*json);
      if (r.member("error") != nullptr)
        return Refusal{r.text("error"), r.text("rule"), r.text("next")};
      if (r.flag("ok")) return Reply{std::move(*json), std::move(frame->fds)};
    }
  }
  const Exit& exit = child_.finish();
  limits_.wall_seconds = timeout_s;
  return Lost{exit.kind == Exit::Kind::kTimedOut, timeout_s,
              "the process " + exit.describe(limits_), clip(exit.output, 4096), refused_call(exit)};
}

Result<Reply> trusted(Answer answer, const char* who) {
  if (auto* reply = std::get_if<Reply>(&answer)) return std::move(*reply);
  if (const auto* refusal = std::get_if<Refusal>(&answer)) {
    const bool reference = refusal->rule == "reference";
    return fail(reference ? ErrorKind::kTask : ErrorKind::kEnvironment, refusal->text,
                reference               ? "mend the task's reference.cu"
                : refusal->next.empty() ? "run again; `kernelpro doctor` shows what this GPU allows"
                                        : refusal->next);
  }
  const Lost& lost = std::get<Lost>(answer);
  return fail(ErrorKind::kEnvironment,
              std::string(who) + ": " + lost.how + (lost.output.empty() ? "" : "\n" + lost.output),
              "run again; if it stays so, check the GPU with nvidia-smi");
}

}  // namespace kernelpro
