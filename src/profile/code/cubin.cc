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

// Entries of the section .nv.info: format, attribute, size or value (16 bits), and the value.
constexpr std::uint8_t kSized = 4;
constexpr std::uint8_t kFrameSize = 0x11, kRegisterCount = 0x2f;
// What the system keeps of each block's shared memory, from sm_90 on.
constexpr std::uint64_t kReservedShared = 1024;

// The sections of a cubin, by number; empty for other bytes.
class Sections {
 public:
  explicit Sections(std::string_view image) : image_(image) {
    const auto head = read<Elf64_Ehdr>(image, 0);
    if (!head || std::memcmp(head->e_ident, ELFMAG, SELFMAG) != 0 ||
        head->e_ident[EI_CLASS] != ELFCLASS64 || head->e_ident[EI_DATA] != ELFDATA2LSB ||
        head->e_machine != kCuda || head->e_shentsize != sizeof(Elf64_Shdr)) {
      return;
    }
    at_ = head->e_shoff;
    names_ = head->e_shstrndx;
    count_ = head->e_shnum;
    if (count_ == 0) {  // too many for the header: in the first section
      const auto first = read<Elf64_Shdr>(image, at_);
      count_ = first ? first->sh_size : 0;
    }
    count_ = std::min(count_, kMostSections);
  }
  std::size_t count() const { return count_; }
  std::optional<Elf64_Shdr> at(std::size_t i) const {
    if (i >= count_) return std::nullopt;
    return read<Elf64_Shdr>(image_, at_ + i * sizeof(Elf64_Shdr));
  }
  std::optional<std::string_view> bytes(const Elf64_Shdr& section) const {
    return part(image_, section);
  }
  std::string name(const Elf64_Shdr& section) const {
    const auto table = at(names_);
    const auto strings = table ? bytes(*table) : std::nullopt;
    return strings ? name_at(*strings, section.sh_name) : "";
  }

 private:
  std::string_view image_;
  std::uint64_t at_ = 0;
  std::size_t names_ = 0, count_ = 0;
};

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
  const Sections sections(image);
  for (std::size_t i = 0; i < sections.count(); ++i) {
    const auto table = sections.at(i);
    if (!table) break;
    if (table->sh_type != SHT_SYMTAB || table->sh_link >= sections.count()) continue;
    const auto linked = sections.at(table->sh_link);
    const auto symbols = sections.bytes(*table);
    const auto strings = linked ? sections.bytes(*linked) : std::nullopt;
    if (symbols && strings) add_functions(*symbols, *strings, &functions);
    break;  // there is one
  }
  return functions;
}

namespace {

// The attributes of functions, by symbol.
void read_info(std::string_view info, std::map<std::uint32_t, KernelResources>* resources) {
  for (std::size_t at = 0; at + 4 <= info.size();) {
    const auto format = static_cast<std::uint8_t>(info[at]);
    const auto attribute = static_cast<std::uint8_t>(info[at + 1]);
    const std::size_t size = format == kSized ? *read<std::uint16_t>(info, at + 2) : 0;
    const auto symbol = read<std::uint32_t>(info, at + 4);
    const auto value = read<std::uint32_t>(info, at + 8);
    at += 4 + size;
    if (size != 8 || !symbol || !value || *value > (1u << 24)) continue;
    const int number = static_cast<int>(*value);
    if (attribute == kRegisterCount) (*resources)[*symbol].registers = number;
    if (attribute == kFrameSize) (*resources)[*symbol].stack_bytes = number;
  }
}

}  // namespace

std::map<std::string, KernelResources> cubin_resources(std::string_view image) {
  const Sections sections(image);
  std::map<std::uint32_t, KernelResources> by_symbol;
  std::map<std::string, std::uint64_t> shared;
  std::uint64_t reserved = 0;
  const std::string_view prefix = ".nv.shared.";
  for (std::size_t i = 0; i < sections.count(); ++i) {
    const auto section = sections.at(i);
    if (!section) break;
    const std::string name = sections.name(*section);
    if (name == ".nv.info") {
      if (const auto info = sections.bytes(*section)) read_info(*info, &by_symbol);
    } else if (name == ".nv.shared.reserved.0") {
      reserved = kReservedShared;
    } else if (name.starts_with(prefix)) {
      shared[name.substr(prefix.size())] = section->sh_size;
    }
  }
  std::map<std::string, KernelResources> resources;
  for (const CubinFunction& function : cubin_functions(image)) {
    const auto known = by_symbol.find(function.symbol);
    if (known == by_symbol.end() || known->second.registers <= 0) continue;
    KernelResources& of = resources[function.name] = known->second;
    of.spill_store_bytes = of.spill_load_bytes = -1;
    const auto bytes = shared.find(function.name);
    if (bytes == shared.end()) continue;
    of.shared_bytes = static_cast<int>(std::min<std::uint64_t>(bytes->second, 1 << 20) -
                                       std::min(bytes->second, reserved));
  }
  return resources;
}

}  // namespace kernelpro
