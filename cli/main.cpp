#include <fmt/core.h>

#include <string_view>

#include "base/knobs.h"

int main(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == "--knobs") {
    fmt::print("{}", sylvite::knobs_markdown());
    return 0;
  }
  fmt::print("sylvite 0.1.0\n");
  return 0;
}
