// SPDX-License-Identifier: Apache-2.0
// One MCP client's session over any transport: negotiation, tools, resources, progress,
// cancellation. Several requests may be in flight. Thread-safe.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "serve/mcp/desk.h"
#include "serve/mcp/jobs.h"
#include "serve/mcp/rpc.h"

namespace kernelpro {

// Oldest first.
extern const char* const kProtocolVersions[4];
bool known_protocol(const std::string& version);

// Receives the answers to one frame, from any thread. No more answers follow once the last
// reference is released.
class Outlet {
 public:
  virtual ~Outlet() = default;
  virtual void send(const Json& message) = 0;
};

class McpSession : public std::enable_shared_from_this<McpSession> {
 public:
  // Both must outlive every job of the session: `jobs` ends first.
  McpSession(Desk& desk, Jobs& jobs) : desk_(desk), jobs_(jobs) {}

  // Handles a frame from read_rpc. Returns at once; answers may come later.
  void receive(RpcFrame frame, const std::shared_ptr<Outlet>& outlet);
  // Cancels every call in flight; sends no more answers.
  void cancel_all();
  bool busy() const;

 private:
  struct Pending {
    std::shared_ptr<Ticket> ticket;
    std::shared_ptr<Outlet> outlet;
  };

  void handle(const RpcMessage& message, const std::shared_ptr<Outlet>& outlet);
  Json answer(const RpcMessage& request);
  Json initialize(const RpcMessage& request);
  // Requests that take their time: calls of tools, and what reads the runs.
  void call(const RpcMessage& request, const std::shared_ptr<Outlet>& outlet);
  void look_up(const RpcMessage& request, const std::shared_ptr<Outlet>& outlet);
  // Runs `work` in a lane and sends what it returns, unless the request is cancelled.
  using Answering = std::function<Json(McpSession& self, Ticket& ticket)>;
  void submit(const RpcMessage& request, const std::shared_ptr<Outlet>& outlet, Lane lane,
              Answering work);
  void notified(const RpcMessage& message);
  void complete(const std::string& key, const Json& message);
  void progress(const std::string& key, const Json& token, double value, const std::string& text);

  Desk& desk_;
  Jobs& jobs_;
  mutable std::mutex mutex_;                // guards the members below
  std::string version_;                     // negotiated; "" before
  std::map<std::string, Pending> pending_;  // by the request's id as JSON
};

}  // namespace kernelpro
