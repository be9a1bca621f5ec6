// SPDX-License-Identifier: Apache-2.0
#include "build/code_hash.h"

#include <cstddef>
#include <cstring>

#include "base/files.h"
#include "base/hash.h"
#include "build/elf.h"
#include "build/plan_form.h"

namespace kernelpro {

namespace {

// Launch plan records are among the initialized globals, each with its source line; zero those.
std::string without_lines(std::string_view globals) {
  std::string text(globals);
  for (std::size_t at = 0; at + kPlanRecordLine + 4 <= text.size(); at += 4) {
    std::uint32_t word = 0;
    std::memcpy(&word, text.data() + at, sizeof word);
    if (word == kPlanRecord) std::memset(text.data() + at + kPlanRecordLine, 0, 4);
  }
  return text;
}

constexpr std::string_view kBuildId = ".note.gnu.build-id";
constexpr Elf64_Half kCudaMachine = 190;

// Whether a section tells a loader what to write into one that it maps: in a shared object these
// are mapped themselves, in a cubin they are not.
bool relocates(const Elf& elf, const Elf64_Shdr& section) {
  if (section.sh_type != SHT_REL && section.sh_type != SHT_RELA) return false;
  return section.sh_info < elf.section_count() &&
         (elf.section(section.sh_info).sh_flags & SHF_ALLOC) != 0;
}

// What a cubin's relocations refer to, without names.
std::string symbols_of(const Elf& elf, const Elf64_Shdr& relocations) {
  if (relocations.sh_link >= elf.section_count()) return "";
  std::string symbols(elf.content(relocations.sh_link));
  for (std::size_t at = 0; at + sizeof(Elf64_Sym) <= symbols.size(); at += sizeof(Elf64_Sym)) {
    std::memset(symbols.data() + at + offsetof(Elf64_Sym, st_name), 0, sizeof(Elf64_Word));
  }
  return symbols;
}

// Hashes all that a loader maps or reads, and a GPU runs: not a cubin's notes, not the build id (a
// program can read its other notes), and not
// the string and symbol tables that only debuggers read, which contain file names. In cubins a
// section's info holds the kernel's register count.
std::string sections_hash(const std::string& path) {
  const auto file = read_file(path);
  if (!file) return "";
  Elf elf(*file);
  if (!elf.read_sections()) return "";
  const bool native = elf.at<Elf64_Ehdr>(0)->e_machine != kCudaMachine;
  std::string all;
  for (std::size_t i = 0; i < elf.section_count(); ++i) {
    const Elf64_Shdr& section = elf.section(i);
    const bool note = section.sh_type == SHT_NOTE && (!native || elf.name(i) == kBuildId);
    const bool mapped = (section.sh_flags & SHF_ALLOC) != 0 && !note;
    const bool room = section.sh_type == SHT_NOBITS;  // shared memory, zeroed globals
    if (!mapped && !room && !relocates(elf, section)) continue;
    if (!mapped && !room) all += hash_hex(symbols_of(elf, section));
    const std::string info = std::to_string(section.sh_info) + " " +
                             std::to_string(section.sh_size) + " " +
                             std::to_string(section.sh_addralign);
    all += elf.name(i) == ".nv.global.init"
               ? hash_hex({elf.name(i), info, without_lines(elf.content(i))})
               : hash_hex({elf.name(i), info, elf.content(i)});
  }
  return hash_hex(all);
}

}  // namespace

std::string code_hash(const std::vector<Binary>& binaries) {
  std::string all;
  for (const Binary& binary : binaries) {
    if (binary.form == Binary::Form::kModule) return "";
    all += std::to_string(static_cast<int>(binary.form)) + binary.case_name + "\n";
    for (const std::string& path : {binary.shared_object, binary.cubin}) {
      if (path.empty()) continue;
      const std::string part = sections_hash(path);
      if (part.empty()) return "";
      all += part;
    }
    if (binary.form == Binary::Form::kPlanForm) all += plan_to_json(binary.plan);
  }
  return hash_hex(all);
}

}  // namespace kernelpro
