// SPDX-License-Identifier: Apache-2.0
#include "serve/http/listen.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "base/text.h"

namespace kernelpro {

namespace {

bool is_loopback(const sockaddr* address) {
  if (address->sa_family == AF_INET) {
    const auto* v4 = reinterpret_cast<const sockaddr_in*>(address);
    return (ntohl(v4->sin_addr.s_addr) >> 24) == 127;
  }
  const auto* v6 = reinterpret_cast<const sockaddr_in6*>(address);
  return IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr);
}

// The bound address, with the actual port.
std::string own_host(int socket) {
  sockaddr_storage bound{};
  socklen_t size = sizeof bound;
  if (::getsockname(socket, reinterpret_cast<sockaddr*>(&bound), &size) != 0) return "";
  char text[INET6_ADDRSTRLEN] = "";
  if (bound.ss_family == AF_INET) {
    const auto* v4 = reinterpret_cast<const sockaddr_in*>(&bound);
    ::inet_ntop(AF_INET, &v4->sin_addr, text, sizeof text);
    return std::string(text) + ":" + std::to_string(ntohs(v4->sin_port));
  }
  const auto* v6 = reinterpret_cast<const sockaddr_in6*>(&bound);
  ::inet_ntop(AF_INET6, &v6->sin6_addr, text, sizeof text);
  return "[" + std::string(text) + "]:" + std::to_string(ntohs(v6->sin6_port));
}

}  // namespace

Result<HttpListener> listen_on(const std::string& host, int port, bool remote) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  const int code = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (code != 0) {
    return fail(ErrorKind::kBadInput,
                "\"" + clip(printable(host), 200) + "\" is not an address: " + ::gai_strerror(code),
                "leave --host out for this machine alone");
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(found, ::freeaddrinfo);
  if (!is_loopback(found->ai_addr) && !remote) {
    return fail(
        ErrorKind::kBadInput,
        "other machines can reach " + host + ", and anyone with the token can run code here",
        "leave --host out, or add --allow-remote if that is what you want (and put TLS in "
        "front)");
  }
  HttpListener listener;
  listener.socket = Fd(::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;
  ::setsockopt(listener.socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  const bool bound = listener.socket.valid() &&
                     ::bind(listener.socket.get(), found->ai_addr, found->ai_addrlen) == 0 &&
                     ::listen(listener.socket.get(), 1024) == 0;
  if (!bound && errno == EADDRINUSE) {
    return fail(ErrorKind::kEnvironment,
                "port " + std::to_string(port) + " of " + host + " is taken by another program",
                "choose another with --port N (0 takes a free one), or end the other program");
  }
  if (!bound) {
    return fail(
        ErrorKind::kEnvironment,
        "cannot listen on " + host + " port " + std::to_string(port) + ": " + std::strerror(errno),
        "choose another --host or --port");
  }
  listener.host = own_host(listener.socket.get());
  return listener;
}

}  // namespace kernelpro
