// SPDX-License-Identifier: Apache-2.0
#include "write/model/http.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/text.h"
#include "write/model/curl_library.h"

namespace kernelpro {
namespace {

constexpr double kGrace = 0.2;                 // for a connection to end after everything arrived
constexpr std::int64_t kAfterAll = 256 << 10;  // bytes
constexpr int kPollMs = 50;
constexpr std::size_t kMaxIdle = 64;  // connections kept

struct Transfer {
  const HttpRequest* request = nullptr;
  HttpSink* sink = nullptr;
  HttpHead head;
  std::int64_t received = 0;
  std::int64_t header_bytes = 0;
  double last_byte = 0;
  std::int64_t after_all = 0;  // bytes received after everything needed
  bool too_large = false;
  bool enough = false;
};

void take_header(std::string_view line, HttpHead* head) {
  if (line.substr(0, 5) == "HTTP/") {  // also after "100 Continue"
    *head = HttpHead();
    const std::vector<std::string> parts = words(line);
    if (parts.size() > 1) head->status = std::atoi(parts[1].c_str());
    return;
  }
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos) return;
  const std::string name = small_letters(line.substr(0, colon));
  const std::string value(trim(line.substr(colon + 1)).substr(0, 200));
  if (name == "content-type") head->content_type = value;
  if (name == "retry-after") head->retry_after = value;
  if (name == "retry-after-ms") head->retry_after_ms = value;
  if (name == "date") head->date = value;
}

std::size_t on_header(char* data, std::size_t size, std::size_t count, void* self) {
  auto* transfer = static_cast<Transfer*>(self);
  const std::string_view line(data, size * count);
  transfer->last_byte = real_clock().now_s();
  transfer->header_bytes += static_cast<std::int64_t>(line.size());
  if (transfer->header_bytes > (1 << 20)) {
    transfer->too_large = true;
    return 0;
  }
  take_header(line, &transfer->head);
  return line.size();
}

std::size_t on_body(char* data, std::size_t size, std::size_t count, void* self) {
  auto* transfer = static_cast<Transfer*>(self);
  const std::string_view part(data, size * count);
  transfer->last_byte = real_clock().now_s();
  transfer->received += static_cast<std::int64_t>(part.size());
  if (transfer->received > transfer->request->max_bytes) {
    transfer->too_large = true;
    return 0;
  }
  if (transfer->sink->complete()) {
    transfer->after_all += static_cast<std::int64_t>(part.size());
    transfer->enough = transfer->after_all > kAfterAll;
    return transfer->enough ? 0 : part.size();
  }
  transfer->sink->bytes(transfer->head, part);
  return part.size();
}

HttpEnd end_of(CURLcode code, const Transfer& transfer) {
  if (transfer.too_large) return HttpEnd::kTooLarge;
  if (transfer.enough) return HttpEnd::kDone;
  switch (code) {
    case CURLE_OK:
      return transfer.head.status > 0 ? HttpEnd::kDone : HttpEnd::kUnreachable;
    case CURLE_URL_MALFORMAT:
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
      return HttpEnd::kRefused;
    default:
      return transfer.head.status > 0 ? HttpEnd::kCut : HttpEnd::kUnreachable;
  }
}

}  // namespace

struct HttpPool::Line {
  const CurlLibrary* curl = nullptr;
  CURLM* multi = nullptr;
  CURL* easy = nullptr;
  curl_slist* headers = nullptr;

  ~Line() {
    if (easy != nullptr) curl->easy_cleanup(easy);
    if (multi != nullptr) curl->multi_cleanup(multi);
    curl->slist_free_all(headers);
  }
  void prepare(const HttpRequest& request, Transfer* transfer);
  HttpResult drive(const HttpRequest& request, Transfer* transfer);
};

void HttpPool::Line::prepare(const HttpRequest& request, Transfer* transfer) {
  curl->easy_reset(easy);  // connections stay
  curl->slist_free_all(std::exchange(headers, nullptr));
  // "Expect:" sends large bodies at once, without asking first.
  headers = curl->slist_append(headers, "Expect:");
  for (const std::string& header : request.headers) {
    headers = curl->slist_append(headers, header.c_str());
  }
  const auto set = [&](CURLoption option, auto value) { curl->easy_setopt(easy, option, value); };
  set(CURLOPT_URL, request.url.c_str());
  set(CURLOPT_PROTOCOLS_STR, "http,https");
  set(CURLOPT_POST, 1L);
  set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
  set(CURLOPT_POSTFIELDS, request.body.data());
  set(CURLOPT_HTTPHEADER, headers);
  set(CURLOPT_USERAGENT, "kernelpro/" KERNELPRO_VERSION);
  set(CURLOPT_NOSIGNAL, 1L);
  set(CURLOPT_FOLLOWLOCATION, 0L);
  set(CURLOPT_ACCEPT_ENCODING, static_cast<const char*>(nullptr));
  set(CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(request.connect_timeout_s * 1000));
  if (request.direct) set(CURLOPT_NOPROXY, "*");
  set(CURLOPT_HEADERFUNCTION, &on_header);
  set(CURLOPT_HEADERDATA, static_cast<void*>(transfer));
  set(CURLOPT_WRITEFUNCTION, &on_body);
  set(CURLOPT_WRITEDATA, static_cast<void*>(transfer));
}

HttpResult HttpPool::Line::drive(const HttpRequest& request, Transfer* transfer) {
  const double begin = real_clock().now_s();
  transfer->last_byte = begin;
  HttpResult result;
  for (int running = 1; running > 0;) {
    const double now = real_clock().now_s();
    const double quiet = now - transfer->last_byte;
    if (transfer->sink->complete() && quiet > kGrace) return result;
    if (request.cancelled && request.cancelled()) {
      result.end = HttpEnd::kCancelled;
    } else if (now - begin > request.timeout_s) {
      result.end = HttpEnd::kTimedOut;
    } else if (quiet > request.stall_s) {
      result.end = HttpEnd::kStalled;
    }
    if (result.end != HttpEnd::kDone) return result;
    if (curl->multi_perform(multi, &running) != CURLM_OK) break;
    if (running > 0) curl->multi_poll(multi, nullptr, 0, kPollMs, nullptr);
  }
  CURLcode code = CURLE_RECV_ERROR;
  int left = 0;
  while (CURLMsg* message = curl->multi_info_read(multi, &left)) {
    if (message->msg == CURLMSG_DONE) code = message->data.result;
  }
  result.end = end_of(code, *transfer);
  if (code != CURLE_OK) result.detail = curl->easy_strerror(code);
  return result;
}

HttpPool::HttpPool() = default;
HttpPool::~HttpPool() = default;

Result<std::unique_ptr<HttpPool>> HttpPool::make() {
  KP_TRY(curl_library());
  return std::unique_ptr<HttpPool>(new HttpPool());
}

std::unique_ptr<HttpPool::Line> HttpPool::take() {
  const std::lock_guard lock(mutex_);
  if (!idle_.empty()) {
    auto line = std::move(idle_.back());
    idle_.pop_back();
    return line;
  }
  auto line = std::make_unique<Line>();
  line->curl = *curl_library();
  line->multi = line->curl->multi_init();
  line->easy = line->curl->easy_init();
  KP_ASSERT(line->multi != nullptr && line->easy != nullptr);
  return line;
}

HttpResult HttpPool::post(const HttpRequest& request, HttpSink& sink) {
  auto line = take();
  Transfer transfer;
  transfer.request = &request;
  transfer.sink = &sink;
  line->prepare(request, &transfer);
  line->curl->multi_add_handle(line->multi, line->easy);
  HttpResult result = line->drive(request, &transfer);
  line->curl->multi_remove_handle(line->multi, line->easy);
  result.head = transfer.head;
  // A connection that had an error is not reused.
  if (result.end == HttpEnd::kDone && !transfer.enough) {
    const std::lock_guard lock(mutex_);
    if (idle_.size() < kMaxIdle) idle_.push_back(std::move(line));
  }
  return result;
}

}  // namespace kernelpro
