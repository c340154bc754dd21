#include "sylvite/attributes.h"

#include "base/error.h"

namespace sylvite {
namespace {

template <typename T>
const T& get_attribute(const std::map<std::string, Attribute>& items, const std::string& name) {
  const auto found = items.find(name);
  if (found == items.end()) throw InternalError("attribute '{}' is absent", name);
  const T* value = std::get_if<T>(&found->second);
  if (value == nullptr) throw InternalError("attribute '{}' is of another kind", name);
  return *value;
}

}  // namespace

std::int64_t Attributes::integer(const std::string& name) const {
  return get_attribute<std::int64_t>(items_, name);
}
double Attributes::real(const std::string& name) const {
  return get_attribute<double>(items_, name);
}
const std::string& Attributes::string(const std::string& name) const {
  return get_attribute<std::string>(items_, name);
}
const std::vector<std::int64_t>& Attributes::integers(const std::string& name) const {
  return get_attribute<std::vector<std::int64_t>>(items_, name);
}

}  // namespace sylvite
