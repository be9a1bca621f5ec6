// SPDX-License-Identifier: Apache-2.0
#include "serve/http/server.h"

#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <list>
#include <thread>

#include "base/clock.h"
#include "base/text.h"
#include "serve/http/connection.h"
#include "serve/http/listen.h"
#include "serve/http/pages.h"
#include "serve/mcp/frames.h"
#include "serve/mcp/session.h"
#include "serve/mcp/stop.h"

namespace kernelpro {

namespace {

constexpr std::size_t kMaxConnections = 64;  // that have shown the token
constexpr std::size_t kMaxStrangers = 256;   // that have not
constexpr double kGrace = 0.25;              // seconds that a stranger keeps its place in any case
constexpr std::size_t kMaxSessions = 64;
constexpr double kHeartbeat = 15;  // seconds between heartbeats in a stream

std::string random_hex(std::size_t bytes) {
  std::string text;
  for (std::size_t i = 0; i < bytes; ++i) {
    unsigned char byte = 0;
    while (::getrandom(&byte, 1, 0) != 1) {
    }
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}

// Messages from the worker threads to the connection's thread.
struct Stream {
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Json> messages;
  bool closed = false;  // no more messages follow
};

class StreamOutlet : public Outlet {
 public:
  explicit StreamOutlet(std::shared_ptr<Stream> stream) : stream_(std::move(stream)) {}
  ~StreamOutlet() override {
    const std::lock_guard<std::mutex> lock(stream_->mutex);
    stream_->closed = true;
    stream_->changed.notify_all();
  }
  void send(const Json& message) override {
    const std::lock_guard<std::mutex> lock(stream_->mutex);
    stream_->messages.push_back(message);
    stream_->changed.notify_all();
  }

 private:
  std::shared_ptr<Stream> stream_;
};

struct Reply {
  int status = 200;
  std::string body;
  std::vector<std::string> headers;  // "Name: value"
};

Reply refusal(int status, const std::string& why) {
  return {status, dump_json(rpc_error(nullptr, kRpcInvalidRequest, why)) + "\n", {}};
}

class HttpServer {
 public:
  HttpServer(const HttpSettings& settings, const DeskSettings& desk)
      : settings_(settings), desk_(desk), pages_(desk.runs, stopping_) {}
  ~HttpServer() { end(); }

  void serve(const HttpListener& listener);

 private:
  struct Client {
    std::shared_ptr<McpSession> session;
    double used = 0;
  };
  struct Served {
    std::thread thread;
    std::atomic<bool> known{false};  // has shown the token
    std::atomic<bool> over{false};
    double since = 0;  // accepting thread only, as the next
    bool dropped = false;
    std::mutex mutex;  // guards socket
    int socket = -1;   // while the thread's connection has it open
  };

  void begin(Fd socket);
  bool make_room();
  bool unused();
  void converse(HttpConnection* connection, Served* served);
  bool shows_token(const HttpRequestHead& head) const;
  // False: the connection is no longer usable.
  bool request(HttpConnection* connection, const HttpRequestHead& head);
  std::optional<Reply> refused(const HttpRequestHead& head) const;
  std::optional<Reply> refused_message(const HttpRequestHead& head) const;
  std::vector<std::string> common_headers(const HttpRequestHead& head) const;
  bool post(HttpConnection* connection, const HttpRequestHead& head, const std::string& body);
  bool stream(HttpConnection* connection, const HttpRequestHead& head, Stream* stream,
              const std::vector<std::string>& headers);
  bool answer(HttpConnection* connection, const HttpRequestHead& head, Reply reply) const;
  Reply drop_session(const std::string& id);
  std::shared_ptr<McpSession> session(const std::string& id);
  std::string new_session(std::shared_ptr<McpSession>* session);
  void end();

  const HttpSettings settings_;
  std::atomic<bool> stopping_{false};
  std::string own_host_;  // "127.0.0.1:8341"
  Desk desk_;
  LivePages pages_;
  Jobs jobs_;
  std::mutex mutex_;  // guards sessions_
  std::map<std::string, Client> sessions_;
  std::list<Served> served_;  // accepting thread only, as the next
  double used_ = 0;           // when there was a client last
};

void HttpServer::end() {
  stopping_ = true;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (auto& [id, client] : sessions_) client.session->cancel_all();
  }
  for (Served& each : served_) each.thread.join();
  served_.clear();
}

void HttpServer::serve(const HttpListener& listener) {
  own_host_ = listener.host;
  const int stop = stop_descriptor();
  for (;;) {
    pollfd polled[2] = {{listener.socket.get(), POLLIN, 0}, {stop, POLLIN, 0}};
    if (::poll(polled, 2, 1000) < 0 && errno != EINTR) break;
    if (polled[1].revents != 0 || unused()) break;
    served_.remove_if([](Served& each) {
      if (!each.over) return false;
      each.thread.join();
      return true;
    });
    if ((polled[0].revents & POLLIN) == 0) continue;
    if (!make_room()) {
      ::usleep(20000);  // others wait in the queue, where they cost nothing
      continue;
    }
    Fd socket(::accept4(listener.socket.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!socket.valid()) {
      ::usleep(20000);  // mostly out of descriptors: wait for connections to end
      continue;
    }
    begin(std::move(socket));
  }
  end();
}

// Whether the server has been without a client for as long as it may.
bool HttpServer::unused() {
  const double now = real_clock().now_s();
  if (!served_.empty() || used_ == 0) used_ = now;
  return settings_.unused_s > 0 && now - used_ > settings_.unused_s;
}

// Ends the oldest stranger if there are too many: it had the most time to show the token. False:
// even that one has come just now.
bool HttpServer::make_room() {
  const auto stranger = [](const Served& each) {
    return !each.known && !each.over && !each.dropped;
  };
  const auto strangers = std::count_if(served_.begin(), served_.end(), stranger);
  if (strangers < static_cast<std::ptrdiff_t>(kMaxStrangers)) return true;
  // They are in the order of their arrival.
  const auto oldest = std::find_if(served_.begin(), served_.end(), stranger);
  if (oldest == served_.end()) return true;
  if (real_clock().now_s() - oldest->since < kGrace) return false;
  const std::lock_guard<std::mutex> lock(oldest->mutex);
  if (oldest->socket >= 0) ::shutdown(oldest->socket, SHUT_RDWR);
  oldest->dropped = true;
  return true;
}

void HttpServer::begin(Fd socket) {
  const bool full = std::count_if(served_.begin(), served_.end(), [](const Served& each) {
                      return each.known && !each.over;
                    }) >= static_cast<std::ptrdiff_t>(kMaxConnections);
  Served& each = served_.emplace_back();
  each.since = real_clock().now_s();
  each.socket = socket.get();
  each.thread = std::thread([this, &each, full, fd = socket.release()] {
    {
      HttpConnection connection(Fd(fd), stopping_, settings_.send_s);
      if (full) {
        answer(&connection, {}, refusal(503, "too many connections: try again later"));
      } else {
        converse(&connection, &each);
      }
      connection.drain();
      const std::lock_guard<std::mutex> lock(each.mutex);
      each.socket = -1;
    }
    each.over = true;
  });
}

void HttpServer::converse(HttpConnection* connection, Served* served) {
  const double until = real_clock().now_s() + settings_.stranger_s;
  while (!stopping_) {
    const double left = until - real_clock().now_s();
    if (!served->known && left <= 0) return;
    const auto read = served->known ? connection->head(settings_.idle_s, settings_.receive_s)
                                    : connection->head(left, std::min(left, settings_.receive_s));
    if (const auto* fault = std::get_if<HttpFault>(&read)) {
      if (fault->status != 0) answer(connection, {}, refusal(fault->status, fault->reason));
      return;
    }
    const HttpRequestHead& head = std::get<HttpRequestHead>(read);
    if (shows_token(head)) served->known = true;
    if (!request(connection, head) || !head.keep_alive) return;
  }
}

bool HttpServer::shows_token(const HttpRequestHead& head) const {
  const std::string bearer = head.header("authorization");
  const bool scheme =
      bearer.size() > 7 && (bearer.starts_with("Bearer ") || bearer.starts_with("bearer "));
  return scheme && same_secret(trim(std::string_view(bearer).substr(7)), settings_.token);
}

// Refuses unauthorized requests. The files of the live page hold no secret: anyone may have them.
std::optional<Reply> HttpServer::refused(const HttpRequestHead& head) const {
  const std::string name = host_name(head.header("host"));
  const bool local = name == "localhost" || name == "127.0.0.1" || name == "[::1]";
  const bool named =
      std::find(settings_.hosts.begin(), settings_.hosts.end(), name) != settings_.hosts.end();
  // Against DNS rebinding: an attacker's host name is never a literal address.
  if (!local && !named && !(settings_.remote && is_address(name))) {
    return refusal(421, "this server does not answer for the host \"" + clip(printable(name), 100) +
                            "\": start it with --allow-host if it should");
  }
  const std::string origin = head.header("origin");
  // The page itself, under whichever of the names above it was opened, or another allowed one.
  const bool known = origin.empty() || origin == "http://" + own_host_ ||
                     origin == "http://" + head.header("host") ||
                     std::find(settings_.origins.begin(), settings_.origins.end(), origin) !=
                         settings_.origins.end();
  if (!known) {
    return refusal(403,
                   "pages from " + clip(printable(origin), 100) +
                       " may not use this server: start it with --allow-origin if they should");
  }
  if (head.method == "OPTIONS" && !origin.empty()) return Reply{204, "", {}};
  if (!shows_token(head) && !LivePages::is_file(head)) {
    const std::string token = "send the server's token: Authorization: Bearer TOKEN";
    Reply reply = refusal(401, token);
    if (LivePages::serves(head)) {
      reply.body = web_refusal(401, "the token is missing or wrong", token).body;
    }
    reply.headers.push_back("WWW-Authenticate: Bearer");
    return reply;
  }
  return std::nullopt;
}

// Refuses what cannot be answered before a byte of the body is read.
std::optional<Reply> HttpServer::refused_message(const HttpRequestHead& head) const {
  if (LivePages::is_file(head) || LivePages::serves(head)) return std::nullopt;
  if (head.path != "/mcp") return refusal(404, "this server has /mcp, and its page at /");
  if (head.method != "POST" && head.method != "DELETE") {
    Reply reply = refusal(405, "POST messages to /mcp; this server has no stream to GET");
    reply.headers.push_back("Allow: POST, DELETE");
    return reply;
  }
  const std::string version = head.header("mcp-protocol-version");
  if (!version.empty() && !known_protocol(version)) {
    return refusal(400, "the MCP-Protocol-Version " + clip(printable(version), 40) +
                            " is not supported: leave it out and initialize");
  }
  if (head.method == "DELETE") return std::nullopt;
  if (!head.has_length) return refusal(411, "a POST needs a Content-Length");
  if (head.content_length > kMaxFrameBytes) {
    return refusal(413, "a message has " + std::to_string(kMaxFrameBytes) + " bytes at most");
  }
  if (!head.header("content-type").starts_with("application/json")) {
    return refusal(415, "a message is sent as Content-Type: application/json");
  }
  return std::nullopt;
}

bool HttpServer::request(HttpConnection* connection, const HttpRequestHead& head) {
  // Where a body is not read, the next request cannot be found: close the connection.
  const bool whole = !head.has_length || head.content_length == 0;
  auto refusal_reply = refused(head);
  if (!refusal_reply) refusal_reply = refused_message(head);
  if (refusal_reply) {
    HttpRequestHead last = head;
    if (!whole) last.keep_alive = false;
    return answer(connection, last, std::move(*refusal_reply)) && whole;
  }
  if (head.path != "/mcp") {
    return pages_.serve(connection, head, common_headers(head)) && whole;
  }
  if (head.expects_continue && !connection->send("HTTP/1.1 100 Continue\r\n\r\n")) return false;
  std::string body;
  if (!connection->body(head.content_length, settings_.receive_s, &body)) {
    HttpRequestHead last = head;
    last.keep_alive = false;
    answer(connection, last, refusal(408, "the body did not come in time"));
    return false;
  }
  if (head.method == "DELETE") {
    return answer(connection, head, drop_session(head.header("mcp-session-id")));
  }
  return post(connection, head, body);
}

Reply HttpServer::drop_session(const std::string& id) {
  std::shared_ptr<McpSession> gone;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = sessions_.find(id);
    if (found == sessions_.end()) return refusal(404, "there is no such session");
    gone = std::move(found->second.session);
    sessions_.erase(found);
  }
  gone->cancel_all();
  return {204, "", {}};
}

std::shared_ptr<McpSession> HttpServer::session(const std::string& id) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = sessions_.find(id);
  if (found == sessions_.end()) return nullptr;
  found->second.used = real_clock().now_s();
  return found->second.session;
}

// "" when all sessions are busy and no more are allowed.
std::string HttpServer::new_session(std::shared_ptr<McpSession>* session) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (sessions_.size() >= kMaxSessions) {
    auto oldest = sessions_.end();
    for (auto it = sessions_.begin(); it != sessions_.end(); ++it) {
      if (it->second.session->busy()) continue;
      if (oldest == sessions_.end() || it->second.used < oldest->second.used) oldest = it;
    }
    if (oldest == sessions_.end()) return "";
    sessions_.erase(oldest);
  }
  const std::string id = random_hex(16);
  *session = std::make_shared<McpSession>(desk_, jobs_);
  sessions_[id] = {*session, real_clock().now_s()};
  return id;
}

bool HttpServer::post(HttpConnection* connection, const HttpRequestHead& head,
                      const std::string& body) {
  RpcFrame frame = read_rpc(body);
  std::string id = head.header("mcp-session-id");
  std::shared_ptr<McpSession> session = this->session(id);
  std::vector<std::string> headers;
  const auto* first = frame.parts.size() == 1 ? std::get_if<RpcMessage>(&frame.parts[0]) : nullptr;
  if (session == nullptr && !id.empty()) {
    return answer(connection, head, refusal(404, "there is no such session: initialize again"));
  }
  if (session == nullptr) {
    if (const auto* fault = std::get_if<RpcFault>(&frame.parts[0])) {
      return answer(connection, head, {400, dump_json(fault->answer) + "\n", {}});
    }
    if (first == nullptr || first->method != "initialize" ||
        first->kind != RpcMessage::Kind::kRequest) {
      return answer(connection, head,
                    refusal(400,
                            "the first request must be initialize; the others carry the "
                            "Mcp-Session-Id that it answers with"));
    }
    id = new_session(&session);
    if (id.empty())
      return answer(connection, head, refusal(503, "too many sessions: try again later"));
    headers.push_back("Mcp-Session-Id: " + id);
  }
  const auto shared = std::make_shared<Stream>();
  session->receive(std::move(frame), std::make_shared<StreamOutlet>(shared));
  {
    const std::lock_guard<std::mutex> lock(shared->mutex);
    if (shared->closed) {
      if (shared->messages.empty()) return answer(connection, head, {202, "", headers});
      if (shared->messages.size() == 1) {
        return answer(connection, head,
                      {200, dump_json(shared->messages.front()) + "\n", std::move(headers)});
      }
    }
  }
  return stream(connection, head, shared.get(), headers);
}

// Sends server-sent events, one chunk each, until the stream is closed. A disconnect does not
// cancel the call: MCP has a message for that.
bool HttpServer::stream(HttpConnection* connection, const HttpRequestHead& head, Stream* stream,
                        const std::vector<std::string>& headers) {
  std::string start =
      "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: "
      "no-store\r\nTransfer-Encoding: chunked\r\n";
  for (const auto& more : {headers, common_headers(head)}) {
    for (const std::string& line : more) start += line + "\r\n";
  }
  if (!connection->send(start + "\r\n")) return false;
  double next_sign = real_clock().now_s() + kHeartbeat;
  std::unique_lock<std::mutex> lock(stream->mutex);
  for (;;) {
    stream->changed.wait_for(lock, std::chrono::milliseconds(200),
                             [&] { return stream->closed || !stream->messages.empty(); });
    if (stopping_) return false;
    if (stream->messages.empty() && stream->closed) break;
    std::string text;
    while (!stream->messages.empty()) {
      text += "event: message\ndata: " + dump_json(stream->messages.front()) + "\n\n";
      stream->messages.pop_front();
    }
    lock.unlock();
    if (text.empty() && real_clock().now_s() > next_sign) text = ": still at it\n\n";
    if (!text.empty()) {
      if (!send_chunk(connection, text)) return false;
      next_sign = real_clock().now_s() + kHeartbeat;
    }
    if (connection->gone()) return false;
    lock.lock();
  }
  lock.unlock();
  return connection->send("0\r\n\r\n");
}

std::vector<std::string> HttpServer::common_headers(const HttpRequestHead& head) const {
  std::vector<std::string> headers = {std::string("Connection: ") +
                                      (head.keep_alive ? "keep-alive" : "close")};
  const std::string origin = head.header("origin");
  const bool listed =
      !origin.empty() && std::find(settings_.origins.begin(), settings_.origins.end(), origin) !=
                             settings_.origins.end();
  if (!listed) return headers;
  headers.push_back("Access-Control-Allow-Origin: " + origin);
  headers.push_back("Access-Control-Expose-Headers: Mcp-Session-Id");
  headers.push_back("Vary: Origin");
  if (head.method == "OPTIONS") {
    headers.push_back("Access-Control-Allow-Methods: POST, DELETE");
    headers.push_back(
        "Access-Control-Allow-Headers: Authorization, Content-Type, Accept, "
        "Mcp-Session-Id, MCP-Protocol-Version");
  }
  return headers;
}

bool HttpServer::answer(HttpConnection* connection, const HttpRequestHead& head,
                        Reply reply) const {
  std::string text = "HTTP/1.1 " + std::to_string(reply.status) + " " +
                     std::string(status_text(reply.status)) + "\r\n";
  for (const auto& more : {reply.headers, common_headers(head)}) {
    for (const std::string& line : more) text += line + "\r\n";
  }
  text += "Cache-Control: no-store\r\n";
  if (!reply.body.empty()) text += "Content-Type: application/json\r\n";
  if (reply.status != 204) text += "Content-Length: " + std::to_string(reply.body.size()) + "\r\n";
  return connection->send(text + "\r\n" + reply.body);
}

}  // namespace

std::string random_token() { return random_hex(32); }

Result<void> serve_http(const HttpSettings& http, const DeskSettings& desk,
                        const std::function<void(const std::string& url)>& ready) {
  KP_ASSERT(!http.token.empty());
  stop_descriptor();
  KP_ASSIGN(const auto listener, listen_on(http.host, http.port, http.remote));
  HttpServer server(http, desk);
  ready("http://" + listener.host);
  server.serve(listener);
  return {};
}

}  // namespace kernelpro
