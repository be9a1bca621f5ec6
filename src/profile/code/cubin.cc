// SPDX-License-Identifier: Apache-2.0
#include "profile/code/cubin.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <optional>

namespace kernelpro {

namespace {

constexpr std::uint16_t kCuda = 190;  // EM_CUDA
constexpr std::size_t kMostSections = 1 << 20;
constexpr std::size_t kMostFunctions = 1 << 18;

template <class T>
std::optional<T> read(std::string_view image, std::uint64_t at) {
  if (at > image.size() || image.size() - at < sizeof(T)) return std::nullopt;
  T value;
  std::memcpy(&value, image.data() + at, sizeof value);
  return value;
}

std::optional<std::string_view> part(std::string_view image, const Elf64_Shdr& section) {
  if (section.sh_offset > image.size() || section.sh_size > image.size() - section.sh_offset) {
    return std::nullopt;
  }
  return image.substr(section.sh_offset, section.sh_size);
}

std::string name_at(std::string_view strings, std::uint32_t at) {
  if (at >= strings.size()) return "";
  strings.remove_prefix(at);
  return std::string(strings.substr(0, strings.find('\0')));
}

void add_functions(std::string_view symbols, std::string_view strings,
                   std::vector<CubinFunction>* functions) {
  const std::size_t count = symbols.size() / sizeof(Elf64_Sym);
  for (std::size_t i = 0; i < count && functions->size() < kMostFunctions; ++i) {
    const auto symbol = read<Elf64_Sym>(symbols, i * sizeof(Elf64_Sym));
    if (!symbol || ELF64_ST_TYPE(symbol->st_info) != STT_FUNC || symbol->st_shndx == SHN_UNDEF) {
      continue;
    }
    std::string name = name_at(strings, symbol->st_name);
    if (name.empty()) continue;
    functions->push_back({std::move(name), static_cast<std::uint32_t>(i), symbol->st_size});
  }
}

}  // namespace

std::vector<CubinFunction> cubin_functions(std::string_view image) {
  std::vector<CubinFunction> functions;
  const auto head = read<Elf64_Ehdr>(image, 0);
  if (!head || std::memcmp(head->e_ident, ELFMAG, SELFMAG) != 0 ||
      head->e_ident[EI_CLASS] != ELFCLASS64 || head->e_ident[EI_DATA] != ELFDATA2LSB ||
      head->e_machine != kCuda || head->e_shentsize != sizeof(Elf64_Shdr)) {
    return functions;
  }
  std::size_t count = head->e_shnum;
  if (count == 0) {  // too many for the header: in the first section
    const auto first = read<Elf64_Shdr>(image, head->e_shoff);
    count = first ? first->sh_size : 0;
  }
  count = std::min(count, kMostSections);
  const auto section = [&](std::size_t i) {
    return read<Elf64_Shdr>(image, head->e_shoff + i * sizeof(Elf64_Shdr));
  };
  for (std::size_t i = 0; i < count; ++i) {
    const auto table = section(i);
    if (!table) break;
    if (table->sh_type != SHT_SYMTAB || table->sh_link >= count) continue;
    const auto linked = section(table->sh_link);
    const auto symbols = part(image, *table);
    const auto strings = linked ? part(image, *linked) : std::nullopt;
    if (symbols && strings) add_functions(*symbols, *strings, &functions);
    break;  // there is one
  }
  return functions;
}

}  // namespace kernelpro
