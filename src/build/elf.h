// SPDX-License-Identifier: Apache-2.0
// A 64-bit ELF file's sections (cubins and shared objects). Safe on any bytes: whatever lies
// outside the file reads as empty. For .cc files only.
#pragma once

#include <elf.h>

#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>
#include <vector>

namespace kernelpro {

// `bytes` must outlive the object.
class Elf {
 public:
  explicit Elf(std::string_view bytes) : bytes_(bytes) {}

  template <class T>
  std::optional<T> at(std::uint64_t offset) const {
    if (offset > bytes_.size() || bytes_.size() - offset < sizeof(T)) return std::nullopt;
    T value;
    std::memcpy(&value, bytes_.data() + offset, sizeof value);
    return value;
  }

  bool read_sections() {
    const auto header = at<Elf64_Ehdr>(0);
    if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
        header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_shentsize != sizeof(Elf64_Shdr)) {
      return false;
    }
    for (unsigned i = 0; i < header->e_shnum; ++i) {
      const auto section = at<Elf64_Shdr>(header->e_shoff + i * sizeof(Elf64_Shdr));
      if (!section) return false;
      sections_.push_back(*section);
    }
    if (header->e_shstrndx >= sections_.size()) return false;
    names_ = header->e_shstrndx;
    return true;
  }

  // Index of a section, or -1.
  int find(std::string_view name) const {
    for (std::size_t i = 0; i < sections_.size(); ++i) {
      if (text(names_, sections_[i].sh_name) == name) return static_cast<int>(i);
    }
    return -1;
  }

  std::string_view name(std::size_t i) const { return text(names_, sections_[i].sh_name); }
  const Elf64_Shdr& section(std::size_t i) const { return sections_[i]; }
  std::size_t section_count() const { return sections_.size(); }

  std::string_view content(std::size_t i) const {
    const Elf64_Shdr& s = sections_[i];
    if (s.sh_type == SHT_NOBITS || s.sh_offset > bytes_.size() ||
        bytes_.size() - s.sh_offset < s.sh_size) {
      return {};
    }
    return bytes_.substr(s.sh_offset, s.sh_size);
  }

  // A NUL-terminated string in a string table.
  std::string_view text(std::size_t table, std::uint64_t offset) const {
    if (table >= sections_.size()) return {};
    const std::string_view all = content(table);
    if (offset >= all.size()) return {};
    const std::size_t end = all.find('\0', offset);
    return end == std::string_view::npos ? std::string_view{} : all.substr(offset, end - offset);
  }

 private:
  std::string_view bytes_;
  std::vector<Elf64_Shdr> sections_;
  std::size_t names_ = 0;
};

}  // namespace kernelpro
