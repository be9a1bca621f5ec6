// SPDX-License-Identifier: Apache-2.0
// One client's TCP connection: receives and sends bytes with time limits. One thread.
#pragma once

#include <atomic>
#include <string>
#include <string_view>
#include <variant>

#include "base/files.h"
#include "serve/http/message.h"

namespace kernelpro {

class HttpConnection {
 public:
  // `stopping` ends waits when it becomes true.
  HttpConnection(Fd socket, const std::atomic<bool>& stopping, double send_s)
      : socket_(std::move(socket)), stopping_(stopping), send_s_(send_s) {}

  // The next request's head. A fault with status 0: the client is gone, or nothing came in time.
  std::variant<HttpRequestHead, HttpFault> head(double idle_s, double receive_s);
  // False: the body did not arrive in time.
  bool body(std::size_t bytes, double receive_s, std::string* out);
  // False: the client is gone, or does not read.
  bool send(std::string_view bytes);
  // Whether the client has closed its end.
  bool gone() const;
  // Keeps reading for a moment, so that a reply sent before the whole request arrived is not lost.
  void drain();

 private:
  bool fill(double until_s);

  Fd socket_;
  const std::atomic<bool>& stopping_;
  const double send_s_;
  std::string buffer_;  // received and not used
};

}  // namespace kernelpro
