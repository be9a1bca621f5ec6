// SPDX-License-Identifier: Apache-2.0
// task: axpy
// expect: wrong-result | rejected | crashed
// Whatever was open where the supervisor was started is open here: a shell's files, the pipes of
// `make`, `<(...)`. It reads all descriptors that are neither its own nor those that it may open.
// The honest kernel runs only if the attack worked: then the verdict would be `correct`.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <initializer_list>

#include "task.h"

static bool attack() {
  struct stat served[5] = {};
  int count = 0;
  for (const char* path : {"/proc/cpuinfo", "/sys/devices/system/cpu/online", "/sys/devices/system/cpu/possible", "/dev/urandom"}) {
    const int file = open(path, O_RDONLY);
    if (file >= 0 && fstat(file, &served[count]) == 0) ++count;
    if (file >= 0) close(file);
  }
  for (int fd = 4; fd < 256; ++fd) {
    struct stat st {};
    if (fstat(fd, &st) != 0) continue;
    bool own = false;
    for (int k = 0; k < count; ++k) own = own || (st.st_dev == served[k].st_dev && st.st_ino == served[k].st_ino);
    char text[64] = {};
    if (own || pread(fd, text, sizeof text - 1, 0) <= 0) continue;
    const bool object = std::memcmp(text, "\177ELF", 4) == 0;
    const bool pages = text[std::strspn(text, "0123456789 \n")] == '\0';  // /proc/self/statm
    if (!object && !pages) return true;
  }
  return false;
}

extern "C" void launch(const Args& args) {
  static const bool worked = attack();
  if (!worked) return;
  for (int i = 0; i < N; ++i) args.y[i] = 2 * args.x[i] + args.z[i];
}
