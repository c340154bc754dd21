#include "frontend/onnx/refuse.h"

#include "base/error.h"

namespace sylvite {

void refuse_attributes(ImportContext& c, std::initializer_list<std::string> names) {
  for (const std::string& name : names) {
    const std::int64_t value = c.integer(name, 0);
    if (value != 0)
      throw UnsupportedError("attribute '{}' is {}; {} is supported without it only", name, value,
                             c.op_type());
  }
}

void refuse_input(ImportContext& c, int i, const std::string& name) {
  if (c.has_input(i)) throw UnsupportedError("input {}, '{}', is not supported for {}", i, name, c.op_type());
}

}  // namespace sylvite
