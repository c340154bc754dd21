#include "runtime/pass_names.h"

#include "frontend/passes/pass_list.h"
#include "lowering/passes/pass_list.h"

namespace sylvite {

std::vector<std::string_view> pass_names() {
  std::vector<std::string_view> names;
  for (const auto& pass : frontend_passes()) names.push_back(pass.name);
  for (const auto& pass : lowering_passes()) names.push_back(pass.name);
  return names;
}

}  // namespace sylvite
