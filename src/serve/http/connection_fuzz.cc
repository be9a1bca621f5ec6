// SPDX-License-Identifier: Apache-2.0
// Requests over a real socket, split into pieces: the result must not depend on the split, which
// the first byte sets.
#include <sys/socket.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "serve/http/connection.h"

namespace {

using namespace kernelpro;

constexpr std::size_t kMostBody = 1 << 16;
constexpr std::size_t kMostPieces = 100;  // the socket buffers them all
constexpr double kWait = 10;              // never reached: the other end is closed

// A packet socket returns one piece per read.
Fd filled_socket(std::string_view bytes, std::size_t step) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) std::abort();
  const Fd writer(ends[1]);
  for (std::size_t at = 0; at < bytes.size(); at += step) {
    const std::string_view piece = bytes.substr(at, step);
    const ssize_t n = ::send(writer.get(), piece.data(), piece.size(), MSG_DONTWAIT);
    if (n != static_cast<ssize_t>(piece.size())) std::abort();
  }
  return Fd(ends[0]);
}

// The requests that the server would see, as text.
std::vector<std::string> requests(std::string_view bytes, std::size_t step) {
  std::vector<std::string> seen;
  const std::atomic<bool> stopping{false};
  HttpConnection connection(filled_socket(bytes, step), stopping, kWait);
  for (;;) {
    const auto read = connection.head(kWait, kWait);
    if (const auto* fault = std::get_if<HttpFault>(&read)) {
      if (fault->status == 408) std::abort();
      seen.push_back(std::to_string(fault->status) + fault->reason);
      return seen;
    }
    const auto& head = std::get<HttpRequestHead>(read);
    seen.push_back(head.method + ' ' + head.path);
    for (const auto& [name, value] : head.headers) seen.push_back(name + ':' + value);
    if (head.content_length > kMostBody) return seen;
    std::string body;
    const bool whole = connection.body(head.content_length, kWait, &body);
    if (whole && body.size() != head.content_length) std::abort();
    if (!whole && !body.empty()) std::abort();
    if (bytes.find(body) == std::string_view::npos) std::abort();
    seen.push_back(whole ? body : "(cut)");
    if (!whole || !head.keep_alive) return seen;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // A packet over 16 KiB would need two reads and lose its rest.
  if (size < 2 || size > (16 << 10)) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::vector<std::string> whole = requests(bytes, bytes.size());
  const std::size_t least = bytes.size() / kMostPieces + 1;
  if (whole != requests(bytes, least)) std::abort();
  if (whole != requests(bytes, std::max<std::size_t>(least, 1 + data[0]))) std::abort();
  return 0;
}
