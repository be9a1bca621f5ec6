// SPDX-License-Identifier: Apache-2.0
// One POST at a time over libcurl; the answer is passed on as it arrives. libcurl is opened at run
// time (libcurl.so.4), so that the program starts on machines without it. Times are in seconds.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace kernelpro {

struct HttpRequest {
  std::string url;
  std::vector<std::string> headers;  // "name: value"
  std::string body;
  bool direct = false;  // bypass any proxy that the environment sets
  double connect_timeout_s = 20;
  double stall_s = 120;    // without a byte from the server
  double timeout_s = 600;  // in total
  std::int64_t max_bytes = 64LL << 20;
  std::function<bool()> cancelled;  // polled at least ten times a second; may be empty
};

struct HttpHead {
  int status = 0;  // 0: no answer
  std::string content_type, retry_after, retry_after_ms, date;
};

enum class HttpEnd {
  kDone,         // complete answer
  kUnreachable,  // no answer began
  kCut,          // the answer ended too early
  kStalled,
  kTimedOut,
  kCancelled,
  kTooLarge,
  kRefused,  // unusable address or untrusted certificate
};

struct HttpResult {
  HttpEnd end = HttpEnd::kDone;
  HttpHead head;
  std::string detail;  // libcurl's message, for kUnreachable, kCut and kRefused
};

// Receives the answer's bytes. Called on the thread of `post`.
class HttpSink {
 public:
  virtual ~HttpSink() = default;
  virtual void bytes(const HttpHead& head, std::string_view part) = 0;
  // True once everything needed has arrived: the connection gets a moment to end by itself, then it
  // is closed.
  virtual bool complete() const { return false; }
};

// Keeps connections open for the next request. Thread-safe; each `post` blocks its own thread. Does
// not follow redirects, which would carry the key elsewhere. Verifies certificates.
class HttpPool {
 public:
  // Fails with kEnvironment when libcurl cannot be opened.
  static Result<std::unique_ptr<HttpPool>> make();
  ~HttpPool();

  HttpResult post(const HttpRequest& request, HttpSink& sink);

 private:
  struct Line;  // an open or potential connection
  HttpPool();
  std::unique_ptr<Line> take();

  std::mutex mutex_;
  std::vector<std::unique_ptr<Line>> idle_;
};

}  // namespace kernelpro
