#include "frontend/values/host_value.h"

namespace sylvite {

std::string HostValue::describe() const {
  if (is_tensor()) return tensor().type().to_string();
  if (is_strings()) return fmt::format("strings[{}]", fmt::join(strings().dims, ","));
  if (is_sequence()) return fmt::format("a sequence of {}", sequence().size());
  return "nothing";
}

}  // namespace sylvite
