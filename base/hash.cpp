#include "base/hash.h"

#include <llvm/ADT/StringExtras.h>
#include <llvm/Support/SHA256.h>

namespace sylvite {

std::string sha256_hex(std::string_view bytes) {
  llvm::SHA256 hasher;
  hasher.update(llvm::StringRef(bytes.data(), bytes.size()));
  return llvm::toHex(hasher.final(), /*LowerCase=*/true);
}

std::string short_hash(std::string_view bytes) {
  return sha256_hex(bytes).substr(0, 16);
}

}  // namespace sylvite
