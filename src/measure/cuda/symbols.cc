// SPDX-License-Identifier: Apache-2.0
#include "measure/cuda/symbols.h"

#include <elf.h>

#include <cstring>
#include <string_view>

namespace kernelpro {

namespace {

template <class T>
bool read_at(const std::string& file, std::uint64_t at, T* out) {
  if (at > file.size() || file.size() - at < sizeof(T)) return false;
  std::memcpy(out, file.data() + at, sizeof(T));
  return true;
}

std::string text_at(const std::string& file, std::uint64_t at) {
  if (at >= file.size()) return "";
  const std::size_t end = file.find('\0', at);
  return end == std::string::npos ? "" : file.substr(at, end - at);
}

}  // namespace

std::vector<std::string> elf_symbols(const std::string& file) {
  std::vector<std::string> names;
  Elf64_Ehdr header;
  if (!read_at(file, 0, &header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
      header.e_ident[EI_CLASS] != ELFCLASS64) {
    return names;
  }
  const auto section = [&](std::uint64_t index, Elf64_Shdr* out) {
    return index < header.e_shnum && header.e_shoff <= file.size() &&
           read_at(file, header.e_shoff + index * sizeof(Elf64_Shdr), out);
  };
  for (std::uint64_t i = 0; i < header.e_shnum; ++i) {
    Elf64_Shdr table, strings;
    if (!section(i, &table) || table.sh_type != SHT_SYMTAB || !section(table.sh_link, &strings)) {
      continue;
    }
    for (std::uint64_t k = 0; k < table.sh_size / sizeof(Elf64_Sym); ++k) {
      Elf64_Sym symbol;
      if (!read_at(file, table.sh_offset + k * sizeof symbol, &symbol)) break;
      if (symbol.st_name == 0) continue;
      std::string name = text_at(file, strings.sh_offset + symbol.st_name);
      if (!name.empty()) names.push_back(std::move(name));
    }
  }
  return names;
}

ForbiddenSymbol forbidden_symbol(const std::string& cubin) {
  static constexpr std::string_view kHeap[] = {"malloc", "free", "__cuda_syscall_mc_dyn_globallock",
                                               "__cudaCDP2Malloc", "__cudaCDP2Free"};
  for (const std::string& name : elf_symbols(cubin)) {
    for (const std::string_view heap : kHeap) {
      if (name == heap) {
        return {"device-heap", "its device code allocates memory (" + name +
                                   "), which lives on between calls; use the workspace"};
      }
    }
    if (name == "vprintf") {
      return {"device-heap",
              "its device code calls printf, whose buffer lives on between calls; leave it out"};
    }
    if (name.find("cudaCDP") != std::string::npos ||
        name.find("cudaLaunchDevice") != std::string::npos ||
        name.find("cudaGraphLaunch") != std::string::npos) {
      return {"device-launch", "its device code launches work itself (" + name +
                                   "), which no launch plan shows; launch it from the host"};
    }
  }
  return {};
}

}  // namespace kernelpro
