// SPDX-License-Identifier: Apache-2.0
// One POST at a time over libcurl, the answer handed on as it arrives. libcurl is opened at run
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
  bool direct = false;  // not through a proxy, whatever the environment says
  double connect_timeout_s = 20;
  double stall_s = 120;    // without a byte from the server
  double timeout_s = 600;  // for all of it
  std::int64_t max_bytes = 64LL << 20;
  std::function<bool()> cancelled;  // asked ten times a second or more; may be empty
};

struct HttpHead {
  int status = 0;  // 0: no answer came
  std::string content_type, retry_after, retry_after_ms, date;
};

enum class HttpEnd {
  kDone,         // the whole answer came
  kUnreachable,  // no answer began
  kCut,          // the answer ended too early
  kStalled,
  kTimedOut,
  kCancelled,
  kTooLarge,
  kRefused,  // the address cannot be used, or its certificate is not trusted
};

struct HttpResult {
  HttpEnd end = HttpEnd::kDone;
  HttpHead head;
  std::string detail;  // libcurl's words, for kUnreachable, kCut and kRefused
};

// What the answer's bytes are told to. Called on the thread of `post`.
class HttpSink {
 public:
  virtual ~HttpSink() = default;
  virtual void bytes(const HttpHead& head, std::string_view part) = 0;
  // All that matters has come: the connection is given a moment to end by itself, and closed.
  virtual bool complete() const { return false; }
};

// Keeps connections for the next request. Thread-safe; each `post` blocks its own thread. Redirects
// are not followed: they would carry the key elsewhere. Certificates are verified.
class HttpPool {
 public:
  // Fails with kEnvironment when libcurl cannot be opened.
  static Result<std::unique_ptr<HttpPool>> make();
  ~HttpPool();

  HttpResult post(const HttpRequest& request, HttpSink& sink);

 private:
  struct Line;  // a connection, or what may become one
  HttpPool();
  std::unique_ptr<Line> take();

  std::mutex mutex_;
  std::vector<std::unique_ptr<Line>> idle_;
};

}  // namespace kernelpro
