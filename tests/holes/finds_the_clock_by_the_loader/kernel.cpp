// SPDX-License-Identifier: Apache-2.0
// task: axpy
// expect: wrong-result | rejected | crashed
// The system's release is blotted out of the clock's pages and their address taken off the stack. Where the
// kernel seals these pages (MSEAL_SYSTEM_MAPPINGS) they cannot be written to and blotting fails, silently; and
// the loader's own list still has their address.
// The honest kernel runs only if the attack worked: then the verdict would be `correct`.
#include <elf.h>
#include <link.h>
#include <sys/mman.h>

#include <cstdint>
#include <cstring>

#include "task.h"

static unsigned release(const char* base) {
  const auto* elf = reinterpret_cast<const Elf64_Ehdr*>(base);
  const auto* parts = reinterpret_cast<const Elf64_Phdr*>(base + elf->e_phoff);
  for (int i = 0; i < elf->e_phnum; ++i) {
    if (parts[i].p_type != PT_NOTE) continue;
    const char* at = base + parts[i].p_offset;
    for (const char* end = at + parts[i].p_filesz; at + sizeof(Elf64_Nhdr) < end;) {
      Elf64_Nhdr note;
      std::memcpy(&note, at, sizeof note);
      const char* name = at + sizeof note;
      const char* contents = name + (note.n_namesz + 3) / 4 * 4;
      unsigned version = 0;
      std::memcpy(&version, contents, 4);
      if (note.n_type == 0 && note.n_namesz == 6 && std::memcmp(name, "Linux", 6) == 0) return version;
      at = contents + (note.n_descsz + 3) / 4 * 4;
    }
  }
  return 0;
}
static bool attack() {
  std::uintptr_t clock = 0;
  dl_iterate_phdr([](dl_phdr_info* info, size_t, void* to) {
    if (std::strstr(info->dlpi_name, "vdso") == nullptr) return 0;
    for (int i = 0; i < info->dlpi_phnum; ++i) {
      if (info->dlpi_phdr[i].p_type != PT_LOAD) continue;
      *static_cast<std::uintptr_t*>(to) = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
    }
    return 1;
  }, &clock);
  if (clock == 0) return false;
  const auto* base = reinterpret_cast<const char*>(clock);
  return release(base) >> 16 >= 3;
}

extern "C" void launch(const Args& args) {
  static const bool worked = attack();
  if (!worked) return;
  for (int i = 0; i < N; ++i) args.y[i] = 2 * args.x[i] + args.z[i];
}
