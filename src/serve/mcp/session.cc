// SPDX-License-Identifier: Apache-2.0
#include "serve/mcp/session.h"

#include <algorithm>

#include "base/text.h"
#include "serve/mcp/resources.h"
#include "serve/mcp/tools.h"

namespace kernelpro {

const char* const kProtocolVersions[4] = {"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"};

bool known_protocol(const std::string& version) {
  return std::find(std::begin(kProtocolVersions), std::end(kProtocolVersions), version) !=
         std::end(kProtocolVersions);
}

namespace {

constexpr const char* kBatching = "2025-03-26";  // the only version with batches
constexpr std::size_t kMaxPending = 100;

constexpr const char* kInstructions =
    "KernelPro checks, times and diagnoses compute kernels. Call list_tasks, then read_task; write "
    "a kernel and evaluate it. Each result says whether the kernel is correct, how fast it is "
    "against the start and the best so far, and what limits it: apply what the first finding "
    "prescribes, and evaluate again. search_code finds existing code to learn from. finish "
    "confirms the best kernel and writes its files. Without a task, make_task turns code into one, "
    "and diagnose_file reads a saved profile or binary. optimize searches by itself: follow it.";

// Collects the answers of a batch and sends them together after the last one.
class BatchOutlet : public Outlet {
 public:
  explicit BatchOutlet(std::shared_ptr<Outlet> to) : to_(std::move(to)) {}
  ~BatchOutlet() override {
    if (!answers_.empty()) to_->send(answers_);
  }
  void send(const Json& message) override {
    if (message.contains("method")) return to_->send(message);
    const std::lock_guard<std::mutex> lock(mutex_);
    answers_.push_back(message);
  }

 private:
  std::shared_ptr<Outlet> to_;
  std::mutex mutex_;
  Json answers_ = Json::array();
};

Json tool_result(const Result<ToolAnswer>& answer, bool structured) {
  if (!answer) {
    return {{"content", {{{"type", "text"}, {"text", printable(answer.error().text())}}}},
            {"isError", true}};
  }
  Json result = {{"content", {{{"type", "text"}, {"text", answer->text}}}}};
  if (structured && !answer->structured.is_null()) {
    result["structuredContent"] = answer->structured;
  }
  result["isError"] = false;
  return result;
}

}  // namespace

void McpSession::receive(RpcFrame frame, const std::shared_ptr<Outlet>& outlet) {
  std::shared_ptr<Outlet> to = outlet;
  if (frame.batch) {
    bool allowed = false;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      allowed = version_ == kBatching;
    }
    if (!allowed) {
      outlet->send(rpc_error(nullptr, kRpcInvalidRequest,
                             "this protocol version has no batches: send one message at a time"));
      return;
    }
    to = std::make_shared<BatchOutlet>(outlet);
  }
  for (const auto& part : frame.parts) {
    if (const auto* fault = std::get_if<RpcFault>(&part)) {
      to->send(fault->answer);
    } else {
      handle(std::get<RpcMessage>(part), to);
    }
  }
}

void McpSession::handle(const RpcMessage& message, const std::shared_ptr<Outlet>& outlet) {
  if (message.kind == RpcMessage::Kind::kResponse) return;  // we send no requests
  if (message.kind == RpcMessage::Kind::kNotification) return notified(message);
  if (message.method == "tools/call") return call(message, outlet);
  if (message.method == "resources/list" || message.method == "resources/read") {
    return look_up(message, outlet);
  }
  outlet->send(answer(message));
}

Json McpSession::answer(const RpcMessage& request) {
  if (request.method == "initialize") return initialize(request);
  if (request.method == "ping") return rpc_result(request.id, Json::object());
  std::string version;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    version = version_;
  }
  const bool templates = request.method == "resources/templates/list";
  if ((templates || request.method == "tools/list") && version.empty()) {
    return rpc_error(request.id, kRpcInvalidRequest, "the first request must be initialize");
  }
  if (templates) return rpc_result(request.id, resource_templates_json());
  if (request.method == "tools/list") {
    return rpc_result(request.id, {{"tools", tools_json(version, desk_.settings().trusted)}});
  }
  return rpc_error(request.id, kRpcMethodNotFound,
                   "there is no method " + clip(printable(request.method), 100) +
                       "; this server has tools/list, tools/call, resources/list, resources/read "
                       "and resources/templates/list");
}

Json McpSession::initialize(const RpcMessage& request) {
  const std::string asked = JsonReader(request.params).text("protocolVersion");
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!version_.empty()) {
    return rpc_error(request.id, kRpcInvalidRequest, "the session is initialized already");
  }
  version_ = known_protocol(asked) ? asked : *std::rbegin(kProtocolVersions);
  return rpc_result(
      request.id,
      {{"protocolVersion", version_},
       {"capabilities",
        {{"tools", {{"listChanged", false}}},
         {"resources", {{"listChanged", false}, {"subscribe", false}}}}},
       {"serverInfo",
        {{"name", "kernelpro"}, {"title", "KernelPro"}, {"version", KERNELPRO_VERSION}}},
       {"instructions", kInstructions}});
}

void McpSession::call(const RpcMessage& request, const std::shared_ptr<Outlet>& outlet) {
  const JsonReader params(request.params);
  const std::string name = params.text("name");
  const McpTool* tool = find_mcp_tool(name, desk_.settings().trusted);
  if (tool == nullptr) {
    return outlet->send(rpc_error(
        request.id, kRpcInvalidParams,
        "there is no tool " + clip(printable(name), 100) + "; tools/list names them all"));
  }
  submit(request, outlet, tool->lane,
         [tool, id = request.id, arguments = params.object("arguments")](McpSession& self,
                                                                         Ticket& ticket) {
           const Result<ToolAnswer> answer = call_tool(*tool, self.desk_, arguments, ticket);
           bool structured = false;
           {
             const std::lock_guard<std::mutex> lock(self.mutex_);
             structured = self.version_ >= kProtocolVersions[2];
           }
           return rpc_result(id, tool_result(answer, structured));
         });
}

void McpSession::look_up(const RpcMessage& request, const std::shared_ptr<Outlet>& outlet) {
  submit(request, outlet, Lane::kLookUp, [request](McpSession& self, Ticket&) {
    const JsonReader params(request.params);
    const std::string& folder = self.desk_.settings().runs;
    if (request.method == "resources/list") {
      return rpc_result(request.id, resources_json(folder, params.text("cursor")));
    }
    auto read = read_resource(folder, params.text("uri"));
    return read ? rpc_result(request.id, std::move(*read))
                : rpc_error(request.id, kRpcResourceNotFound, printable(read.error().text()));
  });
}

void McpSession::submit(const RpcMessage& request, const std::shared_ptr<Outlet>& outlet, Lane lane,
                        Answering work) {
  const std::string key = dump_json(request.id);
  const JsonReader params(request.params);
  const Json token = JsonReader(params.object("_meta")).member("progressToken") != nullptr
                         ? params.object("_meta").at("progressToken")
                         : Json();
  const bool wants_progress = token.is_string() || token.is_number_integer();
  Ticket::OnProgress on_progress;
  const std::weak_ptr<McpSession> weak = weak_from_this();
  if (wants_progress) {
    on_progress = [weak, key, token](double value, const std::string& text) {
      if (const auto self = weak.lock()) self->progress(key, token, value, text);
    };
  }
  const auto ticket = std::make_shared<Ticket>(std::move(on_progress));
  std::string problem;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (version_.empty()) problem = "the first request must be initialize";
    if (pending_.contains(key)) problem = "a call with this id is in flight";
    if (pending_.size() >= kMaxPending) problem = "100 calls are in flight: wait for some of them";
    if (problem.empty()) pending_[key] = {ticket, outlet};
  }
  if (!problem.empty()) {
    return outlet->send(rpc_error(request.id, kRpcInvalidRequest, problem));
  }
  auto job = [weak, key, work = std::move(work)](Ticket& running) {
    const auto self = weak.lock();
    if (!self) return;
    const Json message = work(*self, running);
    if (!running.cancelled()) self->complete(key, message);
  };
  // Without the lock: a job that waits reports so at once.
  jobs_.submit(lane, std::move(job), ticket);
}

void McpSession::notified(const RpcMessage& message) {
  if (message.method != "notifications/cancelled") return;
  const Json* id = JsonReader(message.params).member("requestId");
  if (id == nullptr) return;
  Pending gone;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = pending_.find(dump_json(*id));
    if (found == pending_.end()) return;
    gone = std::move(found->second);
    pending_.erase(found);
  }
  gone.ticket->cancel();
}

void McpSession::complete(const std::string& key, const Json& message) {
  Pending done;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = pending_.find(key);
    if (found == pending_.end()) return;  // cancelled in the meantime
    done = std::move(found->second);
    pending_.erase(found);
  }
  done.outlet->send(message);
}

void McpSession::progress(const std::string& key, const Json& token, double value,
                          const std::string& text) {
  std::shared_ptr<Outlet> outlet;
  std::string version;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = pending_.find(key);
    if (found == pending_.end()) return;
    outlet = found->second.outlet;
    version = version_;
  }
  Json params = {{"progressToken", token}, {"progress", value}};
  if (version >= kBatching) params["message"] = text;  // older versions lack it
  outlet->send(rpc_notification("notifications/progress", std::move(params)));
}

void McpSession::cancel_all() {
  std::map<std::string, Pending> all;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    all.swap(pending_);
  }
  for (auto& [key, pending] : all) pending.ticket->cancel();
}

bool McpSession::busy() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return !pending_.empty();
}

}  // namespace kernelpro
