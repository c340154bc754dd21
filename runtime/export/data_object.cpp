#include "runtime/export/data_object.h"

#include <elf.h>

#include <array>
#include <cstring>

namespace sylvite {
namespace {

constexpr std::uint64_t large_section = 0x10000000;  // SHF_X86_64_LARGE, which older elf.h lack
constexpr std::uint64_t data_alignment = 64;

enum Section : std::uint16_t { none, data, symbols, names, section_names, stack_note, section_count };

constexpr std::array<std::string_view, section_count> section_titles = {
    "", ".lrodata", ".symtab", ".strtab", ".shstrtab", ".note.GNU-stack"};

template <typename Structure>
void append(std::string& file, const Structure& value) {
  file.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

/// Puts the section's bytes at a multiple of its alignment.
void place(std::string& file, Elf64_Shdr& section, std::string_view bytes) {
  section.sh_offset = (file.size() + section.sh_addralign - 1) / section.sh_addralign * section.sh_addralign;
  section.sh_size = bytes.size();
  file.resize(section.sh_offset, '\0');
  file.append(bytes);
}

Elf64_Ehdr file_header() {
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_ident[EI_VERSION] = EV_CURRENT;
  header.e_type = ET_REL;
  header.e_machine = EM_X86_64;
  header.e_version = EV_CURRENT;
  header.e_ehsize = sizeof(Elf64_Ehdr);
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = section_count;
  header.e_shstrndx = section_names;
  return header;
}

std::string symbol_table(std::size_t bytes) {
  Elf64_Sym symbol{};
  symbol.st_name = 1;
  symbol.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT);
  symbol.st_other = STV_HIDDEN;
  symbol.st_shndx = data;
  symbol.st_size = bytes;
  std::string table(sizeof(Elf64_Sym), '\0');
  append(table, symbol);
  return table;
}

}  // namespace

std::string data_object(std::string_view bytes, const std::string& symbol) {
  std::array<Elf64_Shdr, section_count> sections{};
  std::string titles;
  for (std::size_t i = 0; i < sections.size(); ++i) {
    sections[i].sh_name = static_cast<Elf64_Word>(titles.size());
    sections[i].sh_type = i == none ? SHT_NULL : SHT_STRTAB;
    sections[i].sh_addralign = 1;
    titles += section_titles[i];
    titles += '\0';
  }
  sections[data].sh_type = SHT_PROGBITS;
  sections[data].sh_flags = SHF_ALLOC | large_section;
  sections[data].sh_addralign = data_alignment;
  sections[symbols].sh_type = SHT_SYMTAB;
  sections[symbols].sh_link = names;
  sections[symbols].sh_info = 1;  // the first that is not local
  sections[symbols].sh_entsize = sizeof(Elf64_Sym);
  sections[symbols].sh_addralign = alignof(Elf64_Sym);
  sections[stack_note].sh_type = SHT_PROGBITS;
  Elf64_Ehdr header = file_header();
  std::string file;
  file.reserve(bytes.size() + 4096);
  append(file, header);
  place(file, sections[data], bytes);
  place(file, sections[symbols], symbol_table(bytes.size()));
  place(file, sections[names], '\0' + symbol + '\0');
  place(file, sections[section_names], titles);
  file.resize((file.size() + alignof(Elf64_Shdr) - 1) / alignof(Elf64_Shdr) * alignof(Elf64_Shdr), '\0');
  header.e_shoff = file.size();
  for (const Elf64_Shdr& section : sections) append(file, section);
  std::memcpy(file.data(), &header, sizeof(header));
  return file;
}

}  // namespace sylvite
