#include "runtime/export/hide_symbols.h"

#include <elf.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

namespace sylvite {
namespace {

/// A structure of the file at `at`; zero where the file ends before.
template <typename Structure>
Structure read_at(std::string_view file, std::size_t at) {
  Structure value{};
  if (at <= file.size() && sizeof(value) <= file.size() - at)
    std::memcpy(&value, file.data() + at, sizeof(value));
  return value;
}

bool is_seen_outside(const Elf64_Sym& symbol) {
  const int binding = ELF64_ST_BIND(symbol.st_info);
  return symbol.st_shndx != SHN_UNDEF && (binding == STB_GLOBAL || binding == STB_WEAK);
}

void hide_in_table(std::string& file, const Elf64_Shdr& table, const Elf64_Shdr& names,
                   std::string_view prefix) {
  for (std::size_t at = table.sh_offset;
       at + sizeof(Elf64_Sym) <= std::min<std::size_t>(table.sh_offset + table.sh_size, file.size());
       at += sizeof(Elf64_Sym)) {
    const auto symbol = read_at<Elf64_Sym>(file, at);
    const std::size_t name = names.sh_offset + symbol.st_name;
    if (!is_seen_outside(symbol) || file.compare(name, prefix.size(), prefix) == 0) continue;
    file[at + offsetof(Elf64_Sym, st_other)] = static_cast<char>((symbol.st_other & ~0x3U) | STV_HIDDEN);
  }
}

}  // namespace

std::string with_hidden_symbols(std::string_view object, std::string_view prefix) {
  std::string file(object);
  const auto header = read_at<Elf64_Ehdr>(file, 0);
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64)
    return file;
  const auto section = [&](std::size_t number) {
    return read_at<Elf64_Shdr>(file, header.e_shoff + number * header.e_shentsize);
  };
  for (std::size_t i = 0; i < header.e_shnum; ++i)
    if (const Elf64_Shdr table = section(i); table.sh_type == SHT_SYMTAB)
      hide_in_table(file, table, section(table.sh_link), prefix);
  return file;
}

}  // namespace sylvite
