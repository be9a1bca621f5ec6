// SPDX-License-Identifier: Apache-2.0
#include "measure/remote/connection.h"

#include <sys/random.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <utility>

#include "base/cancel.h"
#include "base/clock.h"
#include "base/json.h"
#include "measure/remote/frames.h"

namespace kernelpro {

namespace {

constexpr double kFirstAnswer_s = 60;   // for ssh to connect and the other end to start
constexpr double kPatience_s = 600;     // to have a lost connection again
constexpr double kLongestPause_s = 10;  // between two tries
constexpr auto kLook = std::chrono::milliseconds(100);  // at this thread's CancelScope

std::string new_session() {
  unsigned char bytes[16] = {};
  if (::getrandom(bytes, sizeof bytes, 0) != static_cast<ssize_t>(sizeof bytes)) {
    throw Fatal({ErrorKind::kEnvironment, "the system gives no random numbers",
                 "run on a Linux with getrandom"});
  }
  std::string text;
  for (const unsigned char byte : bytes) {
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}

Error unreachable(const std::string& name, const std::string& why) {
  return {ErrorKind::kEnvironment,
          "the station " + name + " does not answer" + (why.empty() ? "" : ": " + why),
          "try `ssh " + name + " kernelpro doctor`; both sides need the same KernelPro"};
}

struct Welcome {
  int protocol = 0;
  std::string version;
  std::set<std::uint64_t> known;
};

std::optional<Welcome> welcome_of(const std::string& frame) {
  const auto json = parse_json(frame);
  if (!json) return std::nullopt;
  const JsonReader r(*json);
  if (r.member("hello") == nullptr) return std::nullopt;
  Welcome welcome;
  welcome.protocol = static_cast<int>(r.integer("hello"));
  welcome.version = r.text("version");
  for (const Json& id : r.array("known")) {
    if (id.is_number_unsigned()) welcome.known.insert(id.get<std::uint64_t>());
  }
  return welcome;
}

std::mutex registry_mutex;
std::map<std::string, std::weak_ptr<Connection>>& registry() {
  static std::map<std::string, std::weak_ptr<Connection>> connections;
  return connections;
}

}  // namespace

Connection::Connection(StationAddress address)
    : address_(std::move(address)), session_(new_session()) {}

Result<std::shared_ptr<Connection>> Connection::to(const std::string& address) {
  const std::lock_guard lock(registry_mutex);
  std::weak_ptr<Connection>& known = registry()[address];
  if (auto connection = known.lock()) {
    const std::lock_guard inner(connection->mutex_);
    if (!connection->lost_) return connection;
  }
  KP_ASSIGN(auto found, station_address(address));
  std::shared_ptr<Connection> made(new Connection(std::move(found)));
  KP_TRY(made->connect());
  made->reader_ = std::thread([raw = made.get()] { raw->read(); });
  known = made;
  return made;
}

Connection::~Connection() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  changed_.notify_all();
  send(dump_json({{"bye", true}}));
  {
    const std::lock_guard lock(sending_);
    if (link_ != nullptr) link_->cut();
  }
  if (reader_.joinable()) reader_.join();
}

// Replaces the link, and asks again what the other end does not know.
Result<void> Connection::connect() {
  KP_ASSIGN(auto link, Link::start(address_, session_));
  std::vector<std::uint64_t> waiting;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [id, question] : questions_) waiting.push_back(id);
  }
  std::string frame;
  const bool answered = link->send(hello_frame(waiting)) &&
                        link->receive(&frame, kFirstAnswer_s) == ChannelState::kOk;
  const auto welcome = answered ? welcome_of(frame) : std::nullopt;
  if (!welcome) {
    link->cut();
    return tl::unexpected<Error>(unreachable(name(), link->complaint()));
  }
  if (welcome->protocol != kRemoteProtocol || welcome->version != KERNELPRO_VERSION) {
    return fail(ErrorKind::kEnvironment,
                "the station " + name() + " runs KernelPro " + welcome->version +
                    ", this side " KERNELPRO_VERSION,
                "install the same version on both sides");
  }
  const std::lock_guard sending(sending_);
  link_ = std::move(link);
  std::vector<std::string> again;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [id, question] : questions_) {
      if (!welcome->known.contains(id)) again.push_back(question.frame);
      if (question.cancelled) again.push_back(number_frame("cancel", id));
    }
  }
  for (const std::string& each : again) {
    if (!link_->send(each)) break;
  }
  return {};
}

void Connection::send(const std::string& frame) {
  const std::lock_guard lock(sending_);
  if (link_ != nullptr) link_->send(frame);  // if that fails, `connect` sends it again
}

void Connection::read() {
  for (;;) {
    Link* link = nullptr;
    {
      const std::lock_guard lock(sending_);
      link = link_.get();  // only this thread replaces it
    }
    std::string frame;
    while (link->receive(&frame) == ChannelState::kOk) hear(frame);
    std::string why = link->complaint();
    {
      const std::lock_guard lock(mutex_);
      if (closing_) return;
    }
    tell_all("the connection to " + name() + " is lost: connecting again");
    if (!connect_again(&why)) return give_up(unreachable(name(), why));
    tell_all("connected to " + name() + " again");
  }
}

// False: closing, or out of patience.
bool Connection::connect_again(std::string* why) {
  const double until = real_clock().now_s() + kPatience_s;
  for (double pause = 0.05; real_clock().now_s() < until;
       pause = std::min(2 * pause, kLongestPause_s)) {
    {
      std::unique_lock lock(mutex_);
      if (changed_.wait_for(lock, std::chrono::duration<double>(pause), [&] { return closing_; })) {
        return false;
      }
    }
    auto connected = connect();
    if (connected) return true;
    *why = connected.error().message;
  }
  return false;
}

void Connection::hear(const std::string& frame) {
  const auto json = parse_json(frame);
  if (!json) return;
  const JsonReader r(*json);
  const std::uint64_t id = r.natural("id");
  std::function<void(Result<std::string>)> then;
  std::optional<Result<std::string>> answer;
  {
    const std::lock_guard lock(mutex_);
    const auto found = questions_.find(id);
    if (found == questions_.end()) return;
    if (r.member("phase") != nullptr) {
      found->second.phases.push_back(r.text("phase"));
      changed_.notify_all();
      return;
    }
    if (const Json* body = r.member("answer")) {
      answer = Result<std::string>(dump_json(*body));
    } else if (const Json* error = r.member("error")) {
      answer = Result<std::string>(tl::unexpected<Error>(error_from_json(dump_json(*error))));
    } else {
      return;
    }
    if (found->second.then) {
      then = std::move(found->second.then);
      questions_.erase(found);
    } else {
      found->second.answer = answer;
      changed_.notify_all();
    }
  }
  send(number_frame("got", id));
  if (then) then(std::move(*answer));
}

void Connection::tell_all(const std::string& phase) {
  const std::lock_guard lock(mutex_);
  for (auto& [id, question] : questions_) question.phases.push_back(phase);
  changed_.notify_all();
}

void Connection::give_up(const Error& error) {
  std::vector<std::function<void(Result<std::string>)>> waiting;
  {
    const std::lock_guard lock(mutex_);
    lost_ = error;
    for (auto each = questions_.begin(); each != questions_.end();) {
      if (each->second.then) {
        waiting.push_back(std::move(each->second.then));
        each = questions_.erase(each);
      } else {
        each->second.answer = Result<std::string>(tl::unexpected<Error>(error));
        ++each;
      }
    }
    changed_.notify_all();
  }
  for (auto& then : waiting) then(tl::unexpected<Error>(error));
}

std::uint64_t Connection::put(const std::string& verb, const std::string& body,
                              std::function<void(Result<std::string>)> then) {
  std::unique_lock lock(mutex_);
  const std::uint64_t id = ++last_;
  const std::string frame = ask_frame(id, verb, body);
  if (lost_) {
    const Result<std::string> answer = tl::unexpected<Error>(*lost_);
    if (!then) questions_[id].answer = answer;
    lock.unlock();
    if (then) then(answer);
    return id;
  }
  questions_[id].frame = frame;
  questions_[id].then = std::move(then);
  lock.unlock();
  send(frame);
  return id;
}

Result<std::string> Connection::ask(const std::string& verb, const std::string& body,
                                    const Phase& phase) {
  const std::uint64_t id = put(verb, body, nullptr);
  bool cancelled = false;
  for (;;) {
    std::vector<std::string> phases;
    std::optional<Result<std::string>> answer;
    {
      std::unique_lock lock(mutex_);
      Question& question = questions_.at(id);
      changed_.wait_for(lock, kLook, [&] { return question.answer || !question.phases.empty(); });
      phases = std::exchange(question.phases, {});
      if (question.answer) {
        answer = std::move(question.answer);
        questions_.erase(id);
      }
    }
    for (const std::string& each : phases) {
      if (phase) phase(each);
    }
    if (answer) return std::move(*answer);
    if (!cancelled && cancel_requested()) {
      cancelled = true;
      {
        const std::lock_guard<std::mutex> lock(mutex_);
        if (const auto it = questions_.find(id); it != questions_.end())
          it->second.cancelled = true;
      }
      send(number_frame("cancel", id));
    }
  }
}

void Connection::begin(const std::string& verb, const std::string& body,
                       std::function<void(Result<std::string>)> then) {
  put(verb, body, std::move(then));
}

}  // namespace kernelpro
