// SPDX-License-Identifier: Apache-2.0
#include "profile/inject/module_writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "profile/inject/trace_format.h"

namespace kernelpro::tracer {

namespace {

// FNV-1a by words: the images of a program differ, and nobody attacks the name of a file.
std::string name_of(const char* image, std::size_t bytes) {
  std::uint64_t hash = 14695981039346656037ull;
  for (std::size_t at = 0; at < bytes; at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, image + at, bytes - at < 8 ? bytes - at : 8);
    hash = (hash ^ word) * 1099511628211ull;
    hash ^= hash >> 29;
  }
  char name[64];
  std::snprintf(name, sizeof name, "%016llx-%zx", static_cast<unsigned long long>(hash), bytes);
  return std::string(name) + trace_format::kCodeSuffix;
}

bool write_new(const std::string& path, const char* bytes, std::size_t size) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) return errno == EEXIST;  // another process of the program has it
  bool good = true;
  while (good && size > 0) {
    const ssize_t n = ::write(fd, bytes, size);
    if (n < 0 && errno == EINTR) continue;
    good = n > 0;
    if (!good) break;
    bytes += n;
    size -= static_cast<std::size_t>(n);
  }
  ::close(fd);
  if (!good) ::unlink(path.c_str());
  return good;
}

}  // namespace

void ModuleWriter::write(const void* image, std::size_t bytes) noexcept {
  try {
    if (image == nullptr || bytes == 0) return;
    const auto* from = static_cast<const char*>(image);
    const std::string name = name_of(from, bytes);
    const std::lock_guard lock(mutex_);
    if (!known_.insert(name).second) return;
    if (bytes > limit_ - written_ || !write_new(folder_ + "/" + name, from, bytes)) {
      ++left_out_;
      return;
    }
    written_ += bytes;
  } catch (...) {
    ++left_out_;
  }
}

}  // namespace kernelpro::tracer
