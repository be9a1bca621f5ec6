// SPDX-License-Identifier: Apache-2.0
#include "core/task/key.h"

#include <sys/random.h>

#include <cerrno>
#include <charconv>
#include <cstddef>

#include "base/error.h"

namespace kernelpro {

namespace {

constexpr std::size_t kDigits = 8;  // of a word

// At most 256 bytes, which arrive whole.
void fill_random(void* data, std::size_t bytes) {
  ssize_t got = 0;
  do {
    got = ::getrandom(data, bytes, 0);
  } while (got < 0 && errno == EINTR);
  KP_ASSERT(got == static_cast<ssize_t>(bytes));
}

}  // namespace

kp::Key fresh_key() {
  kp::Key key{};
  fill_random(&key, sizeof key);
  return key;
}

std::uint64_t fresh_secret() {
  std::uint64_t secret = 0;
  fill_random(&secret, sizeof secret);
  return secret;
}

kp::Key key_of(std::uint64_t seed) {
  kp::Key key{};
  key.words[0] = static_cast<unsigned>(seed);
  key.words[1] = static_cast<unsigned>(seed >> 32);
  return key;
}

std::uint64_t seed_of(const kp::Key& key) {
  return key.words[0] | static_cast<std::uint64_t>(key.words[1]) << 32;
}

std::string key_to_text(const kp::Key& key) {
  constexpr char kHex[] = "0123456789abcdef";
  std::string text;
  for (const unsigned word : key.words) {
    for (int shift = 28; shift >= 0; shift -= 4) text += kHex[word >> shift & 15u];
  }
  return text;
}

std::optional<kp::Key> key_from_text(std::string_view text) {
  kp::Key key{};
  if (text.size() != kDigits * std::size(key.words)) return std::nullopt;
  for (unsigned& word : key.words) {
    const char* end = text.data() + kDigits;
    const auto [read, error] = std::from_chars(text.data(), end, word, 16);
    if (error != std::errc() || read != end) return std::nullopt;
    text.remove_prefix(kDigits);
  }
  return key;
}

}  // namespace kernelpro
