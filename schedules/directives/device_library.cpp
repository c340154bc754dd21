#include "schedules/directives/device_library.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace sylvite {

using Halide::Internal::Call;

Halide::Expr DeviceLibrary::visit(const Call* call) {
  constexpr std::array<std::string_view, 5> names = {"erf", "fmod", "fmodf", "pow", "powf"};
  Halide::Expr inside = IRMutator::visit(call);
  call = inside.as<Call>();
  if (call == nullptr || call->call_type != Call::PureExtern ||
      std::ranges::find(names, call->name) == names.end())
    return inside;
  return Call::make(call->type, "__nv_" + call->name, call->args, call->call_type);
}

}  // namespace sylvite
