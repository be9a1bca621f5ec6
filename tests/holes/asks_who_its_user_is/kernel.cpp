// SPDX-License-Identifier: Apache-2.0
// task: axpy
// expect: wrong-result | rejected | crashed
// Asks for its user's number, whether that is root, to whom its shared object belongs and when and
// where on which disk it was written.
// The honest kernel runs only if the attack worked: then the verdict would be `correct`.
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>

#include "task.h"

static bool attack() {
  struct stat pipe {}, object{};
  if (fstat(1, &pipe) != 0) return false;
  bool found = false;
  for (int fd = 4; fd < 64 && !found; ++fd) {
    char magic[4];
    found = fstat(fd, &object) == 0 && S_ISREG(object.st_mode) && pread(fd, magic, 4, 0) == 4 && std::memcmp(magic, "\177ELF", 4) == 0;
  }
  constexpr unsigned kNobody = 65534;
  return getuid() != kNobody && pipe.st_uid == getuid() && found && object.st_uid == getuid() && object.st_ino != 0 && object.st_mtime > 1000000000;
}

extern "C" void launch(const Args& args) {
  static const bool worked = attack();
  if (!worked) return;
  for (int i = 0; i < N; ++i) args.y[i] = 2 * args.x[i] + args.z[i];
}
