// SPDX-License-Identifier: Apache-2.0
// The first byte selects the reader: CSV, or SQLite through an in-memory file.
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "profile/import/nsys.h"

namespace {

void read_as_database(const char* bytes, std::size_t size) {
  static const int file = ::memfd_create("export", 0);
  static const std::string path = "/proc/self/fd/" + std::to_string(file);
  if (::ftruncate(file, 0) != 0 || ::pwrite(file, bytes, size, 0) != static_cast<ssize_t>(size)) {
    return;
  }
  if (const auto import = kernelpro::import_nsys_sqlite(path)) {
    static_cast<void>(kernelpro::summarize(import->trace));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const char* bytes = reinterpret_cast<const char*>(data);
  if (data[0] == 'S') {
    // The SQLite magic begins with the same letter, so a whole database is a valid input.
    read_as_database(bytes, size);
    return 0;
  }
  const std::string_view text(bytes, size);
  static_cast<void>(kernelpro::is_nsys_csv(text));
  if (const auto import = kernelpro::import_nsys_csv(text)) {
    static_cast<void>(kernelpro::summarize(import->trace));
  }
  return 0;
}
