// SPDX-License-Identifier: Apache-2.0
// The client's end of a connection to a station elsewhere. A question that is lost with the
// connection is asked again on the next one, and the other end, which numbers them, answers it
// once: nothing is lost, and nothing is measured twice (measure/remote/resident.h).
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "measure/remote/link.h"
#include "measure/station/station.h"

namespace kernelpro {

class Connection {
 public:
  // The process's connection to this address, made now if there is none. Fails with kBadInput as
  // station_address does, and with kEnvironment when nothing answers, or another version.
  static Result<std::shared_ptr<Connection>> to(const std::string& address);
  ~Connection();  // says goodbye: the other end drops what it has prepared
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  const std::string& name() const { return address_.name; }

  // Asks and waits for the answer, JSON, across lost connections (ten minutes for each). `phase`
  // gets progress, on this thread. Honours this thread's CancelScope: the work there is ended, and
  // its answer still comes. Fails as the other end says, or with kEnvironment when the connection
  // cannot be had again. Any thread.
  Result<std::string> ask(const std::string& verb, const std::string& body,
                          const Phase& phase = nullptr);
  // Asks, and calls `then` on another thread with the answer.
  void begin(const std::string& verb, const std::string& body,
             std::function<void(Result<std::string>)> then);

 private:
  struct Question {
    std::string frame;       // as it was sent
    bool cancelled = false;  // the other side is to end the work
    std::vector<std::string> phases;
    std::optional<Result<std::string>> answer;
    std::function<void(Result<std::string>)> then;  // empty: somebody waits
  };

  explicit Connection(StationAddress address);
  Result<void> connect();
  void read();  // on `reader_`, to the end
  void hear(const std::string& frame);
  bool connect_again(std::string* why);
  void give_up(const Error& error);
  std::uint64_t put(const std::string& verb, const std::string& body,
                    std::function<void(Result<std::string>)> then);
  void send(const std::string& frame);
  void tell_all(const std::string& phase);

  const StationAddress address_;
  const std::string session_;
  std::mutex sending_;  // one frame at a time; also guards the pointer
  std::unique_ptr<Link> link_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::map<std::uint64_t, Question> questions_;
  std::uint64_t last_ = 0;
  bool closing_ = false;
  std::optional<Error> lost_;  // for good
  std::thread reader_;
};

}  // namespace kernelpro
