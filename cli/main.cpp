#include <fmt/core.h>

#include <string_view>

#include "runtime/worker.h"

int main(int argc, char** argv) {
  if (argc == 2 && std::string_view(argv[1]) == "worker") {
    return sylvite::worker_main();
  }
  fmt::print("sylvite 0.1.0\n");
  return 0;
}
