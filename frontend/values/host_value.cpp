#include "sylvite/host_value.h"

#include "base/error.h"

namespace sylvite {

std::string HostValue::describe() const {
  if (is_tensor()) return tensor().type().to_string();
  if (is_strings()) return fmt::format("strings[{}]", fmt::join(strings().dims, ","));
  if (is_sequence()) return fmt::format("a sequence of {}", sequence().size());
  return "nothing";
}

void HostValue::refuse(std::string_view wanted) const {
  throw InputError("got {}, expected {}", describe(), wanted);
}

}  // namespace sylvite
